"""The documented event sequence of a guest in one run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import get_args

from hookbridge import errors
from hookbridge.ground.arguments import choice
from hookbridge.ground.lifecycle.events import (
    Delivery,
    Ending,
    Host,
    Kind,
    Mode,
)


def expected_events(
    guest: Kind,
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
    """Return the documented event sequence of one guest in one run.

    Args:
      guest: `"hook"` or `"callback"`.
      host: `"session"` (a session loop) or `"fit"` (`Model.fit`, `evaluate` and
        `predict`).
      steps: completed steps of this run, also if a stop has cut an epoch short.
      steps_per_epoch: steps in an epoch; None when the run is one epoch, or for a
        hook, which has no epochs.
      first_step: global step before the run. A multiple of `steps_per_epoch` in
        `fit`: there it is `initial_epoch * steps_per_epoch`.
      validation_batches: how many batches the guest sees in the validation after each
        epoch; 0 if it sees only its start and end; None without validation.
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
    choice("guest", guest, get_args(Kind))
    choice("host", host, get_args(Host))
    choice("ending", ending, get_args(Ending))
    choice("mode", mode, get_args(Mode))
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
    last_step = first_step + steps
    # One epoch: larger than the run, so that an unfinished step belongs to it too.
    epoch_size = steps_per_epoch or last_step + steps_per_execution
    if guest == "hook":
        events = _hook(
            first_step, last_step, epoch_size, steps_per_execution, ending, host
        )
    elif mode == "train":
        events = _training(
            first_step,
            last_step,
            epoch_size,
            steps_per_execution,
            ending,
            validation_batches,
            host,
        )
    else:
        scope = "test" if mode == "evaluate" else "predict"
        events = _pass(scope, steps, steps_per_execution, ending)
    return [d for d in events if only is None or d.event in only]


def _executions(first: int, last: int, epoch_size: int, size: int) -> Iterator[range]:
    """Yield the global steps of each execution; none crosses the end of an epoch."""
    step = first
    while step < last:
        end_of_epoch = (step // epoch_size + 1) * epoch_size
        after = min(step + size, end_of_epoch, last)
        yield range(step, after)
        step = after


def _hook(
    first: int, last: int, epoch_size: int, size: int, ending: Ending, host: Host
) -> Iterator[Delivery]:
    """Yield the events of a hook in a run of some steps."""
    unfinished = ending in ("end_of_data", "error_in_step")
    started = last > first or unfinished
    if host == "fit" and not started:
        return  # no step was built, so there is no graph, and no `begin`
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
    """Yield the events of a callback in a training of some steps."""
    yield Delivery("set_model")
    yield Delivery("set_params")
    yield Delivery("on_train_begin")

    def begins_epoch(step: int) -> bool:
        return step == first or step % epoch_size == 0

    def begin(step: int) -> Iterator[Delivery]:
        if begins_epoch(step):
            yield Delivery("on_epoch_begin", step // epoch_size)
        yield Delivery("on_train_batch_begin", step % epoch_size)

    for run in _executions(first, last, epoch_size, size):
        yield from begin(run[0])
        yield Delivery("on_train_batch_end", run[-1] % epoch_size)
        is_last = run[-1] + 1 == last
        if is_last and ending == "error_between_steps":
            return
        if (run[-1] + 1) % epoch_size == 0 or (is_last and ending == "clean"):
            yield from _end_of_epoch(run[0] // epoch_size, validation_batches)
    if ending in ("end_of_data", "error_in_step"):
        yield from begin(last)
        # Keras ends an epoch without a step too, with a loss of 0 in its logs; in a
        # session that would look like the best epoch of all.
        if ending == "end_of_data" and (host == "fit" or not begins_epoch(last)):
            yield from _end_of_epoch(last // epoch_size, validation_batches)
    if ending in ("clean", "end_of_data"):
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
