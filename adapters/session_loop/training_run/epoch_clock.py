"""Which epoch of a training session a step belongs to."""

from __future__ import annotations

import math


class EpochClock:
    """The present epoch, and the step from which epochs are counted."""

    def __init__(self, steps_per_epoch: int | None) -> None:
        self._length = steps_per_epoch
        self.number: int = 0  # of the present epoch
        # The global step at which the epoch begins, even if this run entered it later.
        self.start: int = 0
        # The global step at which it is over; infinity if it is endless.
        self.end_step: float = math.inf
        self.is_open: bool = False  # whether it has begun and not ended
        self.batches: int = 0  # how many of its steps had events so far
        # An epoch and the step at which it began: epochs are counted from there. It
        # moves when an epoch ends within its steps.
        self.origin: tuple[int, int] = (0, 0)

    def number_of(self, step: int) -> int:
        """Return the epoch that a step belongs to."""
        number, start = self.origin
        return number + ((step - start) // self._length if self._length else 0)

    def begin(self, step: int) -> None:
        """Open the epoch of a step."""
        self.number = self.number_of(step)
        first, start = self.origin
        self.start = start + (self.number - first) * (self._length or 0)
        if self._length is not None:
            self.end_step = self.start + self._length
        self.is_open = True
        self.batches = 0

    def is_over(self, step: int) -> bool:
        """Return whether the epoch has had all its steps."""
        return step >= self.end_step

    def is_last(self, epochs: int | None) -> bool:
        """Return whether the epoch is the last one, if their number is known."""
        return epochs is not None and self.number + 1 >= epochs

    def shift(self, step: int) -> None:
        """Note that the epoch has ended early: the next one begins at `step`."""
        self.origin = (self.number + 1, step)

    def go_on(
        self, step: int, origin: tuple[int, int] | None, *, went_back: bool
    ) -> None:
        """Go on at a step, after a restart or a recovery.

        Args:
          step: the global step of the new session.
          origin: that of the step, or None if no state was saved with it.
          went_back: whether the session before it had made more steps.
        """
        # With a state the epoch begins again, as after a restart. Without one it stays
        # open where the session has steps of it, or is as it was.
        is_before = step < self.start or (step == self.start and went_back)
        if origin is not None or is_before:
            self.is_open = False
        if not self.is_open:
            if origin is not None:
                self.origin = origin
            elif step < self.origin[1]:
                self.origin = (0, 0)
        # Batches already delivered in an epoch that continues.
        self.batches = step - self.start

    def falls_short(self, step: int, epochs: int | None) -> bool:
        """Return whether a run that ends at a step leaves some of `epochs` over."""
        return bool(epochs and self._length and self.number_of(step) < epochs)
