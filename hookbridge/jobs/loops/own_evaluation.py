"""An evaluation in a loop of the user's own, with the events of callbacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from hookbridge.ground.arguments import parameters_of, with_arguments
from hookbridge.jobs.loops import own_logs


def evaluate(
    callbacks: Any,
    step: Callable[..., Any],
    data: Iterable[Any] | None,
    logs: own_logs.Logs,
) -> dict[str, Any]:
    """Evaluate; see `OwnLoop.evaluate`.

    Args:
      callbacks: the `CallbackList` of the loop.
      step: called with each batch, or with its parts.
      data: the batches; None calls `step` once, without arguments.
      logs: what callbacks get.
    """
    takes_parts = data is not None and _takes_parts(step)
    if not takes_parts:  # else the first batch tells its parts
        with_arguments("step", step, *([] if data is None else ["batch"]))
    epoch = own_logs.OwnEpochLogs()
    callbacks.on_test_begin()
    for number, batch in enumerate(((),) if data is None else data):
        args = () if data is None else (batch,)
        if takes_parts and isinstance(batch, (tuple, list)):
            args = tuple(batch)
        if number == 0:
            with_arguments("step", step, *(f"part_{n}" for n in range(len(args))))
            epoch.begin()
        callbacks.on_test_batch_begin(number)
        callbacks.on_test_batch_end(number, epoch.after(step(*args), logs, args))
    metrics = own_logs.numbers(epoch.last)
    callbacks.on_test_end(metrics)
    return metrics


def _takes_parts(step: object) -> bool:
    """Return whether a step needs several arguments: the parts of a batch."""
    needed = [
        p
        for p in parameters_of(step).values()
        if p.default is p.empty
        and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return len(needed) > 1
