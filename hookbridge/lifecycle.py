"""Both lifecycles as data: events, order, and each event's counterpart.

The loops below are the specification; `HOOK_EVENTS` and `CALLBACK_EVENTS` say the
same event by event, and `expected_events` turns it into the exact sequence that a
guest must see. Native order is that of `tf.compat.v1.train.SessionRunHook` and
`tf.keras.callbacks.Callback`.

A callback in a session loop:

    set_model, set_params                     # hook.begin
    on_train_begin                            # hook.after_create_session
    while not session.should_stop():
        on_epoch_begin(step // steps_per_epoch)   # at the first step of an epoch
        on_train_batch_begin(step % steps_per_epoch)
        session.run(train_op)                 # a run that moves the global step
        on_train_batch_end(step % steps_per_epoch, logs)
        on_test_begin ... on_test_end         # at the last step of an epoch
        on_epoch_end(step // steps_per_epoch, logs)
    on_train_end                              # hook.end

A hook in `Model.fit`:

    on_train_begin, on_epoch_begin(0), on_train_batch_begin(0)
    begin, after_create_session               # the first step is built, not run yet
    for every execution of the train function:
        before_run
        model.train_function(iterator)
        after_run
    end                                       # on_train_end

Nothing here imports TensorFlow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Literal, NamedTuple

from hookbridge import errors

Guest = Literal["hook", "callback"]
Host = Literal["session", "fit"]
Mode = Literal["train", "evaluate", "predict"]
Ending = Literal["clean", "end_of_data", "error_in_step", "error_between_steps"]

GUESTS: tuple[Guest, ...] = ("hook", "callback")
HOSTS: tuple[Host, ...] = ("session", "fit")
MODES: tuple[Mode, ...] = ("train", "evaluate", "predict")
ENDINGS: tuple[Ending, ...] = (
    "clean",
    "end_of_data",
    "error_in_step",
    "error_between_steps",
)


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


HOOK_EVENTS: tuple[Event, ...] = (
    Event(
        "begin",
        "hook",
        "the session, once, before it exists; the graph may still grow",
        "once per `fit`, when the first step is built and has not run",
        "set_model",
    ),
    Event(
        "after_create_session",
        "hook",
        "the session, once it exists and after each recovery; the graph is final",
        "right after `begin`, with the live session",
        "on_train_begin",
    ),
    Event(
        "before_run",
        "hook",
        "the session, before every `run`, whatever it fetches",
        "before every execution of the train function",
        "on_train_batch_begin",
    ),
    Event(
        "after_run",
        "hook",
        "the session, after every `run`, with the values asked for",
        "after that execution, with its values",
        "on_train_batch_end",
    ),
    Event(
        "end",
        "hook",
        "the session, once, at a clean end only",
        "at the end of `fit`, at a clean end only",
        "on_train_end",
    ),
)

_NO_EPOCHS = "a session has no epochs: made from the global step and `steps_per_epoch`"
_NO_PARAMS = "no hook event carries the run's parameters: built from `as_hooks(...)`"
_ALIAS = "an alias that `{}` calls, in either loop"

CALLBACK_EVENTS: tuple[Event, ...] = (
    Event(
        "set_model",
        "callback",
        "`fit`, `evaluate` or `predict`, first of all, with the model",
        "before training, with the live model",
        "begin",
    ),
    Event(
        "set_params",
        "callback",
        "`fit`, `evaluate` or `predict`, after `set_model`",
        "before training, when the graph is complete",
        None,
        _NO_PARAMS,
    ),
    Event(
        "on_train_begin",
        "callback",
        "`fit`, once, before the first epoch",
        "once the session exists: weights can be read",
        "after_create_session",
    ),
    Event(
        "on_epoch_begin",
        "callback",
        "`fit`, before the first batch of an epoch",
        "before the first step of an epoch; a resumed run starts at its own epoch",
        None,
        _NO_EPOCHS,
    ),
    Event(
        "on_train_batch_begin",
        "callback",
        "`fit`, before every execution of the train function",
        "before a run that is a training step, and before no other run",
        "before_run",
    ),
    Event(
        "on_train_batch_end",
        "callback",
        "`fit`, after that execution, with logs",
        "after a run that moved the global step, with logs",
        "after_run",
    ),
    Event(
        "on_batch_begin",
        "callback",
        _ALIAS.format("on_train_batch_begin"),
        _ALIAS.format("on_train_batch_begin"),
        "before_run",
    ),
    Event(
        "on_batch_end",
        "callback",
        _ALIAS.format("on_train_batch_end"),
        _ALIAS.format("on_train_batch_end"),
        "after_run",
    ),
    Event(
        "on_epoch_end",
        "callback",
        "`fit`, after the last batch of an epoch and its validation",
        "after the last step of an epoch, partial or not, and its validation",
        None,
        _NO_EPOCHS,
    ),
    Event(
        "on_train_end",
        "callback",
        "`fit`, once, at a clean end only",
        "once, at a clean end only, while the session is open",
        "end",
    ),
    Event(
        "on_test_begin",
        "callback",
        "`evaluate`, or `fit` before a validation",
        "once the evaluation's session exists, or before a validation",
        "after_create_session",
    ),
    Event(
        "on_test_batch_begin",
        "callback",
        "`evaluate`, before every batch",
        "before every run of an evaluation",
        "before_run",
    ),
    Event(
        "on_test_batch_end",
        "callback",
        "`evaluate`, after every batch, with logs",
        "after every run of an evaluation, with logs",
        "after_run",
    ),
    Event(
        "on_test_end",
        "callback",
        "`evaluate`, at a clean end, with logs",
        "at a clean end of an evaluation or validation, with logs",
        "end",
    ),
    Event(
        "on_predict_begin",
        "callback",
        "`predict`, once",
        "once the prediction's session exists",
        "after_create_session",
    ),
    Event(
        "on_predict_batch_begin",
        "callback",
        "`predict`, before every batch",
        "before every run of a prediction",
        "before_run",
    ),
    Event(
        "on_predict_batch_end",
        "callback",
        "`predict`, after every batch, with `outputs`",
        "after every run of a prediction, with `outputs`",
        "after_run",
    ),
    Event(
        "on_predict_end",
        "callback",
        "`predict`, at a clean end",
        "at a clean end of a prediction",
        "end",
    ),
)

EVENTS: dict[str, Event] = {e.name: e for e in (*HOOK_EVENTS, *CALLBACK_EVENTS)}

# Never called by a host: the method named here calls them.
ALIASES: dict[str, str] = {
    "on_batch_begin": "on_train_batch_begin",
    "on_batch_end": "on_train_batch_end",
}


def events_of(guest: Guest) -> tuple[Event, ...]:
    """All events of a guest kind, in the order in which they are documented."""
    _check("guest", guest, GUESTS)
    return HOOK_EVENTS if guest == "hook" else CALLBACK_EVENTS


def expected_events(
    guest: Guest,
    host: Host,
    *,
    steps: int,
    steps_per_epoch: int | None = None,
    first_step: int = 0,
    validation_batches: int | None = None,
    steps_per_execution: int = 1,
    ending: Ending = "clean",
    mode: Mode = "train",
    only: Collection[str] | None = None,
) -> list[Delivery]:
    """The documented event sequence of one guest in one run.

    Args:
      guest: `"hook"` or `"callback"`.
      host: `"session"` (a session loop) or `"fit"` (`Model.fit` and its kin).
      steps: completed steps of this run; a stop that cut an epoch short counts by
        the steps that were done.
      steps_per_epoch: steps in an epoch; None when the run is one epoch, or for a
        hook, which has no epochs.
      first_step: global step before the run. A multiple of `steps_per_epoch` in
        `fit`: there it is `initial_epoch * steps_per_epoch`.
      validation_batches: batches of the validation after each epoch that the guest
        can see; 0 when only its begin and end show; None without validation.
      steps_per_execution: training steps in one run or one execution.
      ending: `"clean"`, `"end_of_data"` (the step after the last one found no data:
        it began and did not end), `"error_in_step"` (an exception escaped from that
        step) or `"error_between_steps"` (it was raised right after the last
        completed step, before any further event).
      mode: `"train"`, `"evaluate"` or `"predict"`.
      only: the events to keep, such as those the guest overrides; None for all.

    Returns:
      The events in order. Aliases (`on_batch_*`) are left out, and so is a repeated
      `after_create_session` after a recovery.

    Raises:
      errors.InvalidArgumentError: an argument has a value not listed here.
    """
    _check("guest", guest, GUESTS)
    _check("host", host, HOSTS)
    _check("ending", ending, ENDINGS)
    _check("mode", mode, MODES)
    for name, value, least in (
        ("steps", steps, 0),
        ("first_step", first_step, 0),
        ("steps_per_execution", steps_per_execution, 1),
        ("steps_per_epoch", steps_per_epoch, 1),
        ("validation_batches", validation_batches, 0),
    ):
        if value is not None and value < least:
            raise errors.InvalidArgumentError(
                f"Received `{name}={value}`; expected an integer of at least {least}."
            )
    last = first_step + steps
    # One epoch: larger than the run, so that an unfinished step belongs to it too.
    epoch_size = steps_per_epoch or last + steps_per_execution
    if guest == "hook":
        found = _hook(first_step, last, epoch_size, steps_per_execution, ending, host)
    elif mode == "train":
        found = _training(
            first_step,
            last,
            epoch_size,
            steps_per_execution,
            ending,
            validation_batches,
            host,
        )
    else:
        scope = "test" if mode == "evaluate" else "predict"
        found = _pass(scope, steps, steps_per_execution, ending)
    return [d for d in found if only is None or d.event in only]


def _executions(first: int, last: int, epoch_size: int, size: int) -> Iterator[range]:
    """The global steps of each execution; none crosses the end of an epoch."""
    step = first
    while step < last:
        end_of_epoch = (step // epoch_size + 1) * epoch_size
        after = min(step + size, end_of_epoch, last)
        yield range(step, after)
        step = after


def _hook(
    first: int, last: int, epoch_size: int, size: int, ending: Ending, host: Host
) -> Iterator[Delivery]:
    unfinished = ending in ("end_of_data", "error_in_step")
    started = last > first or unfinished
    if host == "fit" and not started:
        return  # no step was ever built, so there is no graph to begin with
    yield Delivery("begin")
    yield Delivery("after_create_session")
    for _ in _executions(first, last, epoch_size, size):
        yield Delivery("before_run")
        yield Delivery("after_run")
    if unfinished:
        yield Delivery("before_run")
    if ending in ("clean", "end_of_data"):
        yield Delivery("end")


def _training(
    first: int,
    last: int,
    epoch_size: int,
    size: int,
    ending: Ending,
    validation_batches: int | None,
    host: Host,
) -> Iterator[Delivery]:
    yield Delivery("set_model")
    yield Delivery("set_params")
    yield Delivery("on_train_begin")
    is_open = False
    for run in _executions(first, last, epoch_size, size):
        epoch, batch = divmod(run[0], epoch_size)
        if not is_open:
            yield Delivery("on_epoch_begin", epoch)
            is_open = True
        yield Delivery("on_train_batch_begin", batch)
        yield Delivery("on_train_batch_end", run[-1] % epoch_size)
        is_last = run[-1] + 1 == last
        if is_last and ending == "error_between_steps":
            return
        if (run[-1] + 1) % epoch_size == 0 or (is_last and ending == "clean"):
            yield from _end_of_epoch(epoch, validation_batches)
            is_open = False
    if ending == "error_between_steps":
        return
    if ending != "clean":
        epoch, batch = divmod(last, epoch_size)
        is_empty = not is_open
        if is_empty:
            yield Delivery("on_epoch_begin", epoch)
        yield Delivery("on_train_batch_begin", batch)
        if ending == "error_in_step":
            return
        # Keras ends an epoch without a step too, with a loss of 0 in its logs; in a
        # session that would look like the best epoch of all.
        if host == "fit" or not is_empty:
            yield from _end_of_epoch(epoch, validation_batches)
    yield Delivery("on_train_end")


def _end_of_epoch(epoch: int, validation_batches: int | None) -> Iterator[Delivery]:
    if validation_batches is not None:
        yield from _scope("test", validation_batches, 1, "clean")
    yield Delivery("on_epoch_end", epoch)


def _pass(scope: str, batches: int, size: int, ending: Ending) -> Iterator[Delivery]:
    yield Delivery("set_model")
    yield Delivery("set_params")
    yield from _scope(scope, batches, size, ending)


def _scope(scope: str, batches: int, size: int, ending: Ending) -> Iterator[Delivery]:
    yield Delivery(f"on_{scope}_begin")
    for run in _executions(0, batches, max(batches, 1), size):
        yield Delivery(f"on_{scope}_batch_begin", run[0])
        yield Delivery(f"on_{scope}_batch_end", run[-1])
    if ending in ("end_of_data", "error_in_step"):
        yield Delivery(f"on_{scope}_batch_begin", batches)
    if ending in ("clean", "end_of_data"):
        yield Delivery(f"on_{scope}_end")


def _check(name: str, value: str, allowed: Collection[str]) -> None:
    if value not in allowed:
        raise errors.InvalidArgumentError(
            f"Received `{name}={value!r}`; expected one of {', '.join(allowed)}."
        )


def overridden(guest: Any, kind: Guest) -> tuple[str, ...]:
    """The events whose method does something in this guest.

    A method of the base class does nothing and is left out, except `set_model` and
    `set_params`, which store what they get. A guest that is no instance of a base
    class overrides every event it has, unless the method bears Keras's own mark for
    "not overridden" (`_is_default`).
    """
    return tuple(e.name for e in events_of(kind) if _does_something(guest, e))


def _does_something(guest: Any, event: Event) -> bool:
    method = getattr(guest, event.name, None)
    if not callable(method):
        return False
    if event.name in ("set_model", "set_params"):
        return True
    if getattr(method, "_is_default", False):
        return False
    function = getattr(method, "__func__", method)
    base = "SessionRunHook" if event.guest == "hook" else "Callback"
    module = str(getattr(function, "__module__", ""))
    return not (
        getattr(function, "__qualname__", "") == f"{base}.{event.name}"
        and module.split(".")[0] in ("tensorflow", "keras", "tf_keras")
    )


TRAINING_EVENTS: tuple[str, ...] = tuple(
    e.name
    for e in (*HOOK_EVENTS, *CALLBACK_EVENTS)
    if e.name not in ALIASES and not e.name.startswith(("on_test", "on_predict"))
)


def event_map_markdown(names: Collection[str] | None = None) -> str:
    """The event map as a Markdown table, one row for each event of either guest.

    Args:
      names: the events to show; None for all.
    """
    rows = [
        "| guest event | in its own loop: who calls it, when | in the other loop | "
        "counterpart |",
        "|---|---|---|---|",
    ]
    for e in EVENTS.values():
        if names is None or e.name in names:
            other = f"`{e.counterpart}`" if e.counterpart else f"none: {e.why_none}"
            rows.append(f"| `{e.name}` | {e.native} | {e.bridged} | {other} |")
    return "\n".join(rows) + "\n"


_ENDINGS: dict[Ending, str] = {
    "clean": "the loop ends, or any guest asked to stop",
    "end_of_data": "the data ends inside a step",
    "error_in_step": "an exception escapes from a step",
    "error_between_steps": "an exception is raised between two steps",
}


def endings_markdown() -> str:
    """What follows the last completed step, by ending, as a Markdown table."""
    rows = [
        "| how it ends | a hook still gets | a callback still gets |",
        "|---|---|---|",
    ]
    for ending, text in _ENDINGS.items():
        cells = []
        for guest in GUESTS:
            events = [
                d.event
                for d in expected_events(
                    guest, "session", steps=2, steps_per_epoch=4, ending=ending
                )
            ]
            last = "after_run" if guest == "hook" else "on_train_batch_end"
            after = events[len(events) - events[::-1].index(last) :]
            cells.append(", ".join(f"`{e}`" for e in after) or "nothing")
        rows.append(f"| {text} | {cells[0]} | {cells[1]} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(event_map_markdown())
    print(event_map_markdown(TRAINING_EVENTS))
    print(endings_markdown())
