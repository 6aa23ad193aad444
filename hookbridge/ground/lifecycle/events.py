"""Both lifecycles as data: each event, who calls it when, and its counterpart."""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple, get_args

from hookbridge import errors
from hookbridge.ground.arguments import shown

Guest = Literal["hook", "callback"]
Host = Literal["session", "fit"]
Mode = Literal["train", "evaluate", "predict"]
Ending = Literal["clean", "end_of_data", "error_in_step", "error_between_steps"]
"""How a run ends; `expected_events` says what each of them means."""


class Event(NamedTuple):
    """One method of a guest.

    Attributes:
      name: the method.
      guest: `"hook"` or `"callback"`.
      native: who calls it in the guest's own loop, and when.
      bridged: when the other loop delivers it.
      counterpart: the event of the other lifecycle at the same point, or None.
      why_none: why there is no counterpart; empty if there is one.
    """

    name: str
    guest: Guest
    native: str
    bridged: str
    counterpart: str | None
    why_none: str = ""


class Delivery(NamedTuple):
    """One event as a guest receives it.

    Attributes:
      event: the method's name.
      number: epoch of an `on_epoch_*` event, batch of an `on_*_batch_*` event, None
        for all others.
    """

    event: str
    number: int | None = None


def _events(guest: Guest, table: str) -> tuple[Event, ...]:
    """Reads `event > counterpart` (or `> none: why`), then `native` and `bridged`."""
    # A line that goes on is indented once more.
    text = table.strip().replace("\n        ", " ")
    events = []
    for row in re.split(r"\n(?=\w)", text):
        head, native, bridged = row.split("\n    ")
        name, other = head.split(" > ")
        is_none = other.startswith("none: ")
        why = other.removeprefix("none: ") if is_none else ""
        counterpart = None if is_none else other
        events.append(Event(name, guest, native, bridged, counterpart, why))
    return tuple(events)


HOOK_EVENTS = _events(
    "hook",
    """
begin > set_model
    the session, once, before it exists; the graph may still grow
    once per `fit`, when the first step is built and has not run
after_create_session > on_train_begin
    the session, once it exists and after each recovery; the graph is final
    right after `begin`, with the live session
before_run > on_train_batch_begin
    the session, before every `run`, whatever it fetches
    before every execution of the train function
after_run > on_train_batch_end
    the session, after every `run`, with the values asked for
    after that execution, with its values
end > on_train_end
    the session, once, at a clean end only
    at the end of `fit`, at a clean end only; tensors of the step are those of the
        last step
""",
)
CALLBACK_EVENTS = _events(
    "callback",
    """
set_model > begin
    `fit`, `evaluate` or `predict`, first of all, with the model
    before training, with the live model
set_params > none: no hook event carries the run's parameters: built from
        `as_hooks(...)`
    `fit`, `evaluate` or `predict`, after `set_model`
    before training, when the graph is complete
on_train_begin > after_create_session
    `fit`, once, before the first epoch
    once the session exists: weights can be read
on_epoch_begin > none: a session has no epochs: made from the global step and
        `steps_per_epoch`
    `fit`, before the first batch of an epoch
    before the first step of an epoch; a resumed run starts at its own epoch
on_train_batch_begin > before_run
    `fit`, before every execution of the train function
    before a run that is a training step, and before no other run
on_train_batch_end > after_run
    `fit`, after that execution, with logs
    after a run that moved the global step, with logs
on_batch_begin > before_run
    an alias that `on_train_batch_begin` calls, in either loop
    an alias that `on_train_batch_begin` calls, in either loop
on_batch_end > after_run
    an alias that `on_train_batch_end` calls, in either loop
    an alias that `on_train_batch_end` calls, in either loop
on_epoch_end > none: a session has no epochs: made from the global step and
        `steps_per_epoch`
    `fit`, after the last batch of an epoch and its validation
    after the last step of an epoch, partial or not, and its validation
on_train_end > end
    `fit`, once, at a clean end only
    once, at a clean end only, while the session is open
on_test_begin > after_create_session
    `evaluate`, or `fit` before a validation
    once the evaluation's session exists, or before a validation
on_test_batch_begin > before_run
    `evaluate`, before every batch
    before every run of an evaluation
on_test_batch_end > after_run
    `evaluate`, after every batch, with logs
    after every run of an evaluation, with logs
on_test_end > end
    `evaluate`, at a clean end, with logs
    at a clean end of an evaluation or validation, with logs
on_predict_begin > after_create_session
    `predict`, once
    once the prediction's session exists
on_predict_batch_begin > before_run
    `predict`, before every batch
    before every run of a prediction
on_predict_batch_end > after_run
    `predict`, after every batch, with `outputs`
    after every run of a prediction, with `outputs`
on_predict_end > end
    `predict`, at a clean end
    at a clean end of a prediction
""",
)

EVENTS: dict[str, Event] = {e.name: e for e in (*HOOK_EVENTS, *CALLBACK_EVENTS)}

# A host never calls these methods: the method named here calls them.
ALIASES: dict[str, str] = {
    "on_batch_begin": "on_train_batch_begin",
    "on_batch_end": "on_train_batch_end",
}


def events_of(guest: Guest) -> tuple[Event, ...]:
    """All events of a guest kind, in the order in which they are documented.

    Args:
      guest: `"hook"` or `"callback"`.

    Raises:
      errors.InvalidArgumentError: `guest` is neither.
    """
    check_choice("guest", guest, Guest)
    return HOOK_EVENTS if guest == "hook" else CALLBACK_EVENTS


def check_choice(name: str, value: str, choices: Any) -> None:
    """Refuses a value that is not among those of a `Literal`."""
    if value not in get_args(choices):
        raise errors.InvalidArgumentError(
            f"Received `{name}={shown(value)}`; expected one of "
            f"{', '.join(get_args(choices))}."
        )
