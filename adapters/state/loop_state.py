"""What a loop keeps of itself for a restart: its epoch, the epoch's means, and rates.

All loops save the same form, and each of them goes on from what another one has saved.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple


class Means(NamedTuple):
    """What a loop reports of its epoch so far, by the names in the logs."""

    sums: Mapping[str, tuple[float, float]] = {}  # sum and weight of each mean
    # The variables of metrics that are not means, by names that the loop gives them.
    metrics: Mapping[str, Any] = {}


class Epoch(NamedTuple):
    """The epoch with which a training goes on."""

    number: int
    is_open: bool  # it has begun, and has not had all its steps
    start: int  # the global step at which it began


class OpenEpoch(NamedTuple):
    """An epoch that an earlier run has begun and not ended."""

    epoch: Epoch
    means: Means  # what its loops have reported of it


class LoopState(NamedTuple):
    """Where a training run is."""

    step: int  # the global step that it was taken at
    rates: Mapping[str, float]  # those that callbacks have set and no checkpoint holds
    means: Means | None  # of the open epoch; None if none is open
    # An epoch and the global step at which it began: epochs are counted from there.
    origin: tuple[int, int]
    steps_per_epoch: int | None = None  # by which a session counts epochs
    # The epoch's number, set by `fit` alone, where it equals `origin[0]`.
    number: int | None = None
    # Whether a step of the open epoch has been made whose events are not all delivered.
    # It is said once for all that is saved, and not in `document`.
    is_in_step: bool = False

    def document(self) -> dict[str, Any]:
        """Return the form that is saved; `parse` reads it."""
        sums, metrics = (None, {}) if self.means is None else self.means
        return {
            "step": self.step,
            "epoch": self.number,
            "steps_per_epoch": self.steps_per_epoch,
            "learning_rates": dict(self.rates),
            "epoch_logs": None
            if sums is None
            else {name: list(pair) for name, pair in sums.items()},
            "metrics": dict(metrics),
            "origin": list(self.origin),
        }

    @property
    def epoch(self) -> Epoch | None:
        """Return the epoch after the step, or None if it is unknown."""
        is_open, (first, start) = self.means is not None, self.origin
        if self.number is not None:
            return Epoch(self.number, is_open, start)
        if not self.steps_per_epoch:
            return None
        epochs = (self.step - start) // self.steps_per_epoch
        return Epoch(first + epochs, is_open, start + epochs * self.steps_per_epoch)


def parse(document: object, step: int) -> LoopState:
    """Return what `document` described; of another version, parts may be missing.

    Args:
      document: what was saved, or None.
      step: the global step of all that was saved with it.

    Raises:
      TypeError: a part is not of its kind.
      ValueError: it begins its epoch after its step.
    """
    parts = _dict(document)
    step = int(parts.get("step", step))
    sums = parts.get("epoch_logs")
    first, start = parts.get("origin") or (0, 0)
    if type(first) is not int or type(start) is not int:
        raise TypeError(
            f"the epoch has the number {first!r} and begins at step {start!r}; "
            "expected two integers"
        )
    if not (first >= 0 and 0 <= start <= step):
        raise ValueError(
            f"epoch {first} begins at step {start}; expected a number from 0 and a "
            f"step from 0 to {step}, the step of the checkpoint"
        )
    return LoopState(
        step,
        {str(k): float(v) for k, v in _dict(parts.get("learning_rates")).items()},
        None
        if sums is None
        else Means(
            {
                str(name): (float(total), float(weight))
                for name, (total, weight) in _dict(sums).items()
            },
            _dict(parts.get("metrics")),
        ),
        (first, start),
        _count(parts.get("steps_per_epoch")),
        _count(parts.get("epoch")),
    )


def epoch_of(loops: Iterable[LoopState]) -> Epoch | None:
    """Return the epoch of the first of several loops that knows it."""
    return next((loop.epoch for loop in loops if loop.epoch is not None), None)


def most_alike(
    loops: Sequence[LoopState], steps_per_epoch: int | None, keys: Collection[str]
) -> LoopState:
    """Return the state that a run of a session goes on with.

    Args:
      loops: what the groups of callbacks of an earlier run have saved; not empty.
      steps_per_epoch: the length of an epoch of the run.
      keys: the names of the means of the run.
    """

    def likeness(loop: LoopState) -> tuple[bool, int]:
        sums = {} if loop.means is None else loop.means.sums
        shared = len(sums.keys() & set(keys))
        return loop.steps_per_epoch == steps_per_epoch, shared

    return max(loops, key=likeness)


def open_epoch(loops: Sequence[LoopState]) -> OpenEpoch | None:
    """Return the epoch that an earlier run has not ended, if there is one.

    Args:
      loops: what the loops of that run have saved, each with means of its own.
    """
    epoch = epoch_of(loops)
    if epoch is None or not epoch.is_open:
        return None
    # Groups of callbacks in a session may have means of their own.
    means = [loop.means for loop in loops if loop.epoch and loop.means is not None]
    sums = {k: v for of_loop in reversed(means) for k, v in of_loop.sums.items()}
    return OpenEpoch(epoch, Means(sums, means[0].metrics))


def _count(value: Any) -> int | None:
    return None if value is None else int(value)


def _dict(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError(f"expected a dict, received {value!r}")
    return value
