"""Which epoch a `fit` is in, for the state of its callbacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookbridge.adapters.state.loop_state import LoopState, Means


def length_in(params: Mapping[str, Any]) -> int | None:
    """Return how many steps an epoch of `fit` has by its parameters, if known."""
    steps, samples, size = map(params.get, ("steps", "samples", "batch_size"))
    if steps is None and samples and size:  # arrays in a v1 graph
        return -(-int(samples) // int(size))
    return steps


class FitEpoch:
    """The epoch of a `fit`, as its last event says; `length` in steps, if known."""

    def __init__(self, length: int | None = None) -> None:
        self._length = length
        # That of the open epoch or of the next one; None before the first one.
        self.number: int | None = None
        self._is_open = False
        self._begin: int | None = None  # the global step, from its first step on
        # That at which an earlier run began this epoch, which goes on.
        self._earlier_begin: int | None = None

    def begin(self, number: int, earlier_begin: int | None = None) -> None:
        """Begin the epoch; an earlier run may have begun it at another step."""
        self.number, self._is_open, self._begin = number, True, None
        self._earlier_begin = earlier_begin

    def step_begins(self, step: int) -> None:
        """Note that the step after the global step `step` begins."""
        if self._begin is None:
            self._begin = step

    def end(self, number: int) -> None:
        """End the epoch; the next one is the one to go on with."""
        self.number, self._is_open = number + 1, False

    def is_whole(self, step: int) -> bool:
        """Return whether the epoch has no step, or all of them."""
        begin, length = self._begin, self._length
        return begin is None or (length is not None and step - begin >= length)

    def state(self, step: int, rates: Mapping[str, float], means: Means) -> LoopState:
        """Return what is saved at a global step, with the means so far."""
        number, is_open = self.number, self._is_open
        if number is None:
            return LoopState(step, rates, None, (0, 0))
        if is_open and self._begin is not None and self.is_whole(step):
            # Killed now, it has no end: `fit` cannot make an epoch without steps.
            number, is_open = number + 1, False
        if not is_open:
            return LoopState(step, rates, None, (number, step), number=number)
        begins = (self._earlier_begin, self._begin, step)
        begin = next(begin for begin in begins if begin is not None)
        return LoopState(step, rates, means, (number, begin), number=number)
