"""The mean of a value over the batches of an epoch, in each loop."""

from __future__ import annotations

from typing import Any

import numpy as np


class RunningMean:
    """A weighted mean that is updated step by step, in single precision.

    Keras keeps the loss of an epoch in a `Mean` metric of float32 weighted by the
    batch size; the same arithmetic gives the same digits. Values are numbers, or
    tensors of float32: nobody waits for these, and the mean is a tensor too.
    """

    __slots__ = ("_count", "_total")

    def __init__(self, total: float = 0.0, count: float = 0.0) -> None:
        self._total: Any = np.float32(total)
        self._count = np.float32(count)

    def update(self, value: Any, weight: float = 1.0) -> Any:
        """Adds a value and returns the mean so far."""
        number = np.float32(weight)
        self._total = value * number + self._total
        self._count += number
        return self._total / self._count if self._count else 0.0

    def state(self) -> tuple[float, float]:
        """Sum and weight so far, from which another mean may go on."""
        return float(self._total), float(self._count)
