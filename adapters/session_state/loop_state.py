"""The state of a training run itself, saved with the state of its callbacks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple


class LoopState(NamedTuple):
    """Where a training run is."""

    step: int  # the global step that it was taken at
    rates: Mapping[str, float]  # those that are fed, by the names of their tensors
    # Sum and weight of each mean of the open epoch; None if none is open.
    sums: Mapping[str, tuple[float, float]] | None
    metrics: Mapping[str, Any]  # the streaming ones, by the names of their variables
    # An epoch and the global step at which it began: epochs are counted from there.
    origin: tuple[int, int]
    steps_per_epoch: int | None = None  # the length of an epoch, if there are epochs
    # Whether a step of the open epoch has been made whose events are not all delivered.
    # It is said once for all that is saved, and not in `document`.
    is_in_step: bool = False

    def document(self) -> dict[str, Any]:
        """Return the form that is saved; `parse` reads it."""
        sums = None if self.sums is None else {k: list(v) for k, v in self.sums.items()}
        return {
            "step": self.step,
            "steps_per_epoch": self.steps_per_epoch,
            "learning_rates": dict(self.rates),
            "epoch_logs": None
            if sums is None
            else {k: list(v) for k, v in sums.items()},
            "metrics": dict(self.metrics),
            "origin": list(self.origin),
        }


def parse(document: Any, step: int) -> LoopState:
    """Return what `document` described.

    Of another loop or version, parts may be missing.
    """
    parts = _dict(document)
    step = int(parts.get("step", step))
    rates, sums = _dict(parts.get("learning_rates")), parts.get("epoch_logs")
    number, start = parts.get("origin") or (0, 0)
    if type(number) is not int or type(start) is not int:
        raise TypeError(
            f"the epoch has the number {number!r} and begins at step {start!r}; "
            "expected two integers"
        )
    if not (number >= 0 and 0 <= start <= step):
        raise ValueError(
            f"epoch {number} begins at step {start}; expected a number from 0 and a "
            f"step from 0 to {step}, the step of the checkpoint"
        )
    length = parts.get("steps_per_epoch")
    return LoopState(
        step,
        {str(name): float(rate) for name, rate in rates.items()},
        None if sums is None else {k: _pair(v) for k, v in _dict(sums).items()},
        _dict(parts.get("metrics")),
        (number, start),
        None if length is None else int(length),
    )


def best_of(
    loops: Sequence[LoopState], steps_per_epoch: int | None, keys: Collection[str]
) -> LoopState | None:
    """Which of the saved states a run goes on with; None if there is none."""

    def likeness(loop: LoopState) -> tuple[bool, int]:
        shared = len((loop.sums or {}).keys() & set(keys))
        return loop.steps_per_epoch == steps_per_epoch, shared

    return max(loops, key=likeness, default=None)


def _dict(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError(f"expected a dict, received {value!r}")
    return value


def _pair(value: Any) -> tuple[float, float]:
    total, count = map(float, value)
    return total, count
