"""Which processes of a cluster call a guest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, get_args

from absl import logging

from hookbridge import errors
from hookbridge.adapters.guests import keras_rows, kinds
from hookbridge.ground.arguments import shown
from hookbridge.ground.processes.tf_config import task_of
from hookbridge.ground.protocols import Session

Role = Literal["split", "chief", "worker", "evaluator", "all"]
ROLES: tuple[Role, ...] = get_args(Role)

MEANING: dict[Role, str] = {
    "split": "every worker; the validation and `on_train_end` on the chief",
    "chief": "the chief, and an evaluator for what is given to it",
    "worker": "the chief and every worker",
    "evaluator": "the evaluator",
    "all": "every process that it is given to",
}

_MARK = "_hookbridge_role"


def default_role(guest: object, *, is_hook: bool) -> Role:
    """Return where a guest runs without `set_role`.

    A hook runs in every process that it is given to, as in TensorFlow. These run on the
    chief: Keras callbacks that write, callbacks with Keras's own mark
    `_chief_worker_only`, and callbacks that monitor a `val_*` value, which only the
    chief has. All others are split as in ElasticDL's design: batch and epoch events on
    every worker, `on_test_*` and `on_train_end` on the chief.
    """
    if is_hook:
        return "all"
    bases = kinds.keras_bases(guest)
    writes = any(keras_rows.row(base.__name__).is_for_chief for base in bases)
    if writes or str(getattr(guest, "monitor", "")).startswith("val_"):
        return "chief"
    return "chief" if getattr(guest, "_chief_worker_only", None) else "split"


def set_role(guest: object, role: Role) -> Any:
    """Set which processes of a cluster call a guest.

    The role takes effect when the guest is converted, by `as_hooks`, `as_callbacks` or
    a loop of `hookbridge.jobs.loops`. In a job of one process every guest is called.

    Args:
      guest: a hook or callback; it gets a mark and is otherwise unchanged.
      role: `"chief"`: the chief, and an evaluator for what is given to it;
        `"worker"`: the chief and every worker; `"evaluator"`: the evaluator;
        `"all"`: every process; `"split"`, for callbacks: every worker, but the
        validation's events and `on_train_end` on the chief only.

    Returns:
      `guest` itself.

    Raises:
      errors.NotAGuestError: `guest` is neither a hook nor a callback.
      errors.InvalidArgumentError: there is no such role for this guest.
    """
    (guest,) = kinds.flatten([guest])
    role = check_role(role)
    if role == "split" and kinds.is_hook(guest):
        raise errors.InvalidArgumentError(
            f"Received role='split' for the hook `{kinds.name_of(guest)}`, whose "
            "events belong to one session; expected 'chief', 'worker', 'evaluator' "
            "or 'all'."
        )
    vars(guest)[_MARK] = role
    return guest


def given_role(guest: object) -> Role | None:
    """Return the role that `set_role` gave, or None."""
    role: Role | None = getattr(guest, "__dict__", {}).get(_MARK)
    return role


def check_role(role: object) -> Role:
    for known in ROLES:
        if role == known:
            return known
    raise errors.InvalidArgumentError(
        f"`role` is {shown(role)}; expected one of {', '.join(map(repr, ROLES))}."
    )


def runs_here(role: Role) -> bool:
    """Return whether this process calls a guest of this role."""
    task = task_of()
    if task == "local" or role in ("all", "split"):
        return True
    if role == "chief":
        return task in ("chief", "evaluator")
    return task == "evaluator" if role == "evaluator" else task != "evaluator"


def delivers(role: Role, event: str) -> bool:
    """Return whether a guest that this process calls gets an event here.

    Args:
      role: the guest's role.
      event: the name of the callback's method, such as `on_test_end`.
    """
    # Only the chief validates.
    is_shared = not event.startswith(("on_train_end", "on_test_"))
    return role != "split" or is_shared or task_of() != "worker"


def warn_of_own_server(session: Session, guests: Iterable[Any]) -> None:
    """Warn of guests for one process only where hookbridge cannot tell the processes.

    Args:
      session: the session, which may be on a server that the program has started.
      guests: their records.
    """
    if task_of() != "local" or not getattr(session, "sess_str", None):
        return
    names = [guest.name for guest in guests if guest.role in ("chief", "evaluator")]
    if names:
        logging.warning(
            "hookbridge: the session is on a server, but TF_CONFIG does not say which "
            "task this process is. So it also calls %s, which only the chief should "
            "call. If other processes do the same, set TF_CONFIG, or put these into "
            "the list on the chief only.",
            ", ".join(f"`{name}`" for name in dict.fromkeys(names)),
        )


def say_skipped(name: str, role: Role) -> None:
    """Log that this process does not call a guest of this name and role."""
    logging.info(
        "hookbridge: `%s` has the role %r (%s); this process is the %s and skips it. "
        '`hb.set_role(guest, "all")` makes it run here too.',
        name,
        role,
        MEANING[role],
        task_of(),
    )
