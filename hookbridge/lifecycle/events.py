"""Both lifecycles as data: each event, who calls it when, and its counterpart."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

from hookbridge import errors
from hookbridge.arguments import shown

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


def _events(guest: Guest, *rows: tuple[Any, ...]) -> tuple[Event, ...]:
    return tuple(Event(name, guest, *rest) for name, *rest in rows)


HOOK_EVENTS = _events(
    "hook",
    (
        "begin",
        "the session, once, before it exists; the graph may still grow",
        "once per `fit`, when the first step is built and has not run",
        "set_model",
    ),
    (
        "after_create_session",
        "the session, once it exists and after each recovery; the graph is final",
        "right after `begin`, with the live session",
        "on_train_begin",
    ),
    (
        "before_run",
        "the session, before every `run`, whatever it fetches",
        "before every execution of the train function",
        "on_train_batch_begin",
    ),
    (
        "after_run",
        "the session, after every `run`, with the values asked for",
        "after that execution, with its values",
        "on_train_batch_end",
    ),
    (
        "end",
        "the session, once, at a clean end only",
        "at the end of `fit`, at a clean end only; tensors of the step are those of "
        "the last step",
        "on_train_end",
    ),
)

_NO_EPOCHS = "a session has no epochs: made from the global step and `steps_per_epoch`"
_NO_PARAMS = "no hook event carries the run's parameters: built from `as_hooks(...)`"
_ALIAS = "an alias that `{}` calls, in either loop"

CALLBACK_EVENTS = _events(
    "callback",
    (
        "set_model",
        "`fit`, `evaluate` or `predict`, first of all, with the model",
        "before training, with the live model",
        "begin",
    ),
    (
        "set_params",
        "`fit`, `evaluate` or `predict`, after `set_model`",
        "before training, when the graph is complete",
        None,
        _NO_PARAMS,
    ),
    (
        "on_train_begin",
        "`fit`, once, before the first epoch",
        "once the session exists: weights can be read",
        "after_create_session",
    ),
    (
        "on_epoch_begin",
        "`fit`, before the first batch of an epoch",
        "before the first step of an epoch; a resumed run starts at its own epoch",
        None,
        _NO_EPOCHS,
    ),
    (
        "on_train_batch_begin",
        "`fit`, before every execution of the train function",
        "before a run that is a training step, and before no other run",
        "before_run",
    ),
    (
        "on_train_batch_end",
        "`fit`, after that execution, with logs",
        "after a run that moved the global step, with logs",
        "after_run",
    ),
    (
        "on_batch_begin",
        _ALIAS.format("on_train_batch_begin"),
        _ALIAS.format("on_train_batch_begin"),
        "before_run",
    ),
    (
        "on_batch_end",
        _ALIAS.format("on_train_batch_end"),
        _ALIAS.format("on_train_batch_end"),
        "after_run",
    ),
    (
        "on_epoch_end",
        "`fit`, after the last batch of an epoch and its validation",
        "after the last step of an epoch, partial or not, and its validation",
        None,
        _NO_EPOCHS,
    ),
    (
        "on_train_end",
        "`fit`, once, at a clean end only",
        "once, at a clean end only, while the session is open",
        "end",
    ),
    (
        "on_test_begin",
        "`evaluate`, or `fit` before a validation",
        "once the evaluation's session exists, or before a validation",
        "after_create_session",
    ),
    (
        "on_test_batch_begin",
        "`evaluate`, before every batch",
        "before every run of an evaluation",
        "before_run",
    ),
    (
        "on_test_batch_end",
        "`evaluate`, after every batch, with logs",
        "after every run of an evaluation, with logs",
        "after_run",
    ),
    (
        "on_test_end",
        "`evaluate`, at a clean end, with logs",
        "at a clean end of an evaluation or validation, with logs",
        "end",
    ),
    (
        "on_predict_begin",
        "`predict`, once",
        "once the prediction's session exists",
        "after_create_session",
    ),
    (
        "on_predict_batch_begin",
        "`predict`, before every batch",
        "before every run of a prediction",
        "before_run",
    ),
    (
        "on_predict_batch_end",
        "`predict`, after every batch, with `outputs`",
        "after every run of a prediction, with `outputs`",
        "after_run",
    ),
    (
        "on_predict_end",
        "`predict`, at a clean end",
        "at a clean end of a prediction",
        "end",
    ),
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
