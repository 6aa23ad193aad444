"""Both lifecycles as data: each event, who calls it when, and its counterpart."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from hookbridge.ground.arguments import choice

Kind = Literal["hook", "callback"]
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
    guest: Kind
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


HOOK_EVENTS = (
    Event(
        "begin",
        "hook",
        native="the session, once, before it exists; the graph may still grow",
        bridged="once per `fit`, when the first step is built and has not run",
        counterpart="set_model",
    ),
    Event(
        "after_create_session",
        "hook",
        native=(
            "the session, once it exists and after each recovery; the graph is final"
        ),
        bridged="right after `begin`, with the live session",
        counterpart="on_train_begin",
    ),
    Event(
        "before_run",
        "hook",
        native="the session, before every `run`, whatever it fetches",
        bridged="before every execution of the train function",
        counterpart="on_train_batch_begin",
    ),
    Event(
        "after_run",
        "hook",
        native="the session, after every `run`, with the values asked for",
        bridged="after that execution, with its values",
        counterpart="on_train_batch_end",
    ),
    Event(
        "end",
        "hook",
        native="the session, once, at a clean end only",
        bridged=(
            "at the end of `fit`, at a clean end only; tensors of the step have the "
            "values of the last step"
        ),
        counterpart="on_train_end",
    ),
)
CALLBACK_EVENTS = (
    Event(
        "set_model",
        "callback",
        native="`fit`, `evaluate` or `predict`, first of all, with the model",
        bridged="before training, with the live model",
        counterpart="begin",
    ),
    Event(
        "set_params",
        "callback",
        native="`fit`, `evaluate` or `predict`, after `set_model`",
        bridged="before training, when the graph is complete",
        counterpart=None,
        why_none=(
            "no hook event carries the run's parameters: built from `as_hooks(...)`"
        ),
    ),
    Event(
        "on_train_begin",
        "callback",
        native="`fit`, once, before the first epoch",
        bridged="once the session exists: weights can be read",
        counterpart="after_create_session",
    ),
    Event(
        "on_epoch_begin",
        "callback",
        native="`fit`, before the first batch of an epoch",
        bridged=(
            "before the first step of an epoch; a resumed run starts at its own epoch"
        ),
        counterpart=None,
        why_none=(
            "a session has no epochs: made from the global step and `steps_per_epoch`"
        ),
    ),
    Event(
        "on_train_batch_begin",
        "callback",
        native="`fit`, before every execution of the train function",
        bridged="before a run that is a training step, and before no other run",
        counterpart="before_run",
    ),
    Event(
        "on_train_batch_end",
        "callback",
        native="`fit`, after that execution, with logs",
        bridged="after a run that moved the global step, with logs",
        counterpart="after_run",
    ),
    Event(
        "on_batch_begin",
        "callback",
        native="an alias that `on_train_batch_begin` calls, in either loop",
        bridged="an alias that `on_train_batch_begin` calls, in either loop",
        counterpart="before_run",
    ),
    Event(
        "on_batch_end",
        "callback",
        native="an alias that `on_train_batch_end` calls, in either loop",
        bridged="an alias that `on_train_batch_end` calls, in either loop",
        counterpart="after_run",
    ),
    Event(
        "on_epoch_end",
        "callback",
        native="`fit`, after the last batch of an epoch and its validation",
        bridged="after the last step of an epoch, partial or not, and its validation",
        counterpart=None,
        why_none=(
            "a session has no epochs: made from the global step and `steps_per_epoch`"
        ),
    ),
    Event(
        "on_train_end",
        "callback",
        native="`fit`, once, at a clean end only",
        bridged="once, at a clean end only, while the session is open",
        counterpart="end",
    ),
    Event(
        "on_test_begin",
        "callback",
        native="`evaluate`, or `fit` before a validation",
        bridged="once the evaluation's session exists, or before a validation",
        counterpart="after_create_session",
    ),
    Event(
        "on_test_batch_begin",
        "callback",
        native="`evaluate`, before every batch",
        bridged="before every run of an evaluation",
        counterpart="before_run",
    ),
    Event(
        "on_test_batch_end",
        "callback",
        native="`evaluate`, after every batch, with logs",
        bridged="after every run of an evaluation, with logs",
        counterpart="after_run",
    ),
    Event(
        "on_test_end",
        "callback",
        native="`evaluate`, at a clean end, with logs",
        bridged="at a clean end of an evaluation or validation, with logs",
        counterpart="end",
    ),
    Event(
        "on_predict_begin",
        "callback",
        native="`predict`, once",
        bridged="once the prediction's session exists",
        counterpart="after_create_session",
    ),
    Event(
        "on_predict_batch_begin",
        "callback",
        native="`predict`, before every batch",
        bridged="before every run of a prediction",
        counterpart="before_run",
    ),
    Event(
        "on_predict_batch_end",
        "callback",
        native="`predict`, after every batch, with `outputs`",
        bridged="after every run of a prediction, with `outputs`",
        counterpart="after_run",
    ),
    Event(
        "on_predict_end",
        "callback",
        native="`predict`, at a clean end",
        bridged="at a clean end of a prediction",
        counterpart="end",
    ),
)

HOOK_METHODS = tuple(event.name for event in HOOK_EVENTS)
EVENTS: dict[str, Event] = {e.name: e for e in (*HOOK_EVENTS, *CALLBACK_EVENTS)}

# A host never calls these methods: the method named here calls them.
ALIASES: dict[str, str] = {
    "on_batch_begin": "on_train_batch_begin",
    "on_batch_end": "on_train_batch_end",
}


def events_of(guest: Kind) -> tuple[Event, ...]:
    """Return the events of a kind of guest, in the documented order.

    Args:
      guest: `"hook"` or `"callback"`.

    Raises:
      errors.InvalidArgumentError: `guest` is neither.
    """
    choice("guest", guest, get_args(Kind))
    return HOOK_EVENTS if guest == "hook" else CALLBACK_EVENTS
