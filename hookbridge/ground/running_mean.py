"""The mean of a value over the batches of an epoch, in each loop."""

from __future__ import annotations

from typing import Any

import numpy as np

_ZERO = np.float32(0)


class RunningMean:
    """A weighted mean that is updated step by step, in single precision.

    Keras keeps the loss of an epoch in a `Mean` metric of float32 weighted by the
    batch size; the same arithmetic gives the same digits.

    Args:
      total: the sum so far, from which the mean goes on.
      count: the weight so far. Both are of one kind with what `update` gets: numbers of
        `np.float32`, or 0 for tensors of float32 with whole numbers as weights, which
        are added up where they are: nobody waits for their values.
    """

    __slots__ = ("_count", "_total")

    def __init__(self, total: Any = _ZERO, count: Any = _ZERO) -> None:
        self._total = total
        self._count = count

    def update(self, value: object, weight: Any) -> Any:
        """Add a value and return the mean so far.

        Args:
          value: a number or an array.
          weight: how much it counts, such as the number of its examples.
        """
        self._total = self._total + value * weight
        self._count = self._count + weight
        return self._total / self._count if self._count else 0.0

    def state(self) -> tuple[float, float]:
        """Sum and weight so far, from which another mean may go on."""
        return float(self._total), float(self._count)
