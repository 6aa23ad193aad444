"""Epochs of a session loop: counted by the global step."""

from __future__ import annotations

import math

from hookbridge.adapters import values


class EpochClock:
    """Which epoch a step belongs to.

    Args:
      steps_per_epoch: training steps in an epoch; None means one endless epoch.

    Attributes:
      number: of the present epoch.
      start: the global step at which it began, or would have begun.
      stop: the global step at which it is over; infinity if it is endless.
      is_open: whether it has begun and not ended.
      batches: steps with events that it has had so far.
    """

    def __init__(self, steps_per_epoch: int | None) -> None:
        self._length = steps_per_epoch
        self.number = 0
        self.start = 0
        self.stop: float = math.inf
        self.is_open = False
        self.batches = 0
        # Where epochs are counted from: they shift when data ends within one.
        self._first_number = 0
        self._first_start = 0

    def begin(self, step: int) -> None:
        """Opens the epoch of a step."""
        passed = values.epoch_of(step - self._first_start, self._length)
        self.number = self._first_number + passed
        self.start = self._first_start + passed * (self._length or 0)
        if self._length is not None:
            self.stop = self.start + self._length
        self.is_open = True
        self.batches = 0

    def is_over(self, step: int) -> bool:
        """Whether the epoch has had its steps."""
        return step >= self.stop

    def shift(self, step: int) -> None:
        """The data ended within the epoch: the next one begins at `step`."""
        self._first_number, self._first_start = self.number + 1, step

    def rewind(self, step: int) -> None:
        """A recovery went back to `step`; counts anew if that is before the epoch."""
        if step < self.start:
            self.is_open = False
            self._first_number = self._first_start = 0

    def falls_short(self, step: int, epochs: int | None) -> bool:
        """Whether a run that ends at a step leaves some of `epochs` to the next."""
        return bool(epochs and self._length and step < epochs * self._length)
