"""Events of scheduled steps that are yet to be delivered, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol


class Waitable(Protocol):
    """The values of one scheduled step or batch."""

    @property
    def is_ready(self) -> bool: ...


class _Item(NamedTuple):
    number: int
    value: Waitable | None
    deliver: Callable[[], None]


class Deliveries:
    """A first-in-first-out queue of events, of at most `max_lag` steps.

    Attributes:
      max_lag: how many steps may have been scheduled after the one whose events
        are delivered; 0 delivers a step's events before the next is scheduled.
      scheduled: the number of the step that was scheduled last.
    """

    def __init__(self, max_lag: int) -> None:
        self.max_lag = max_lag
        self.scheduled = 0
        self._latest: Any = None
        self._items: deque[_Item] = deque()
        self._is_delivering = False

    def __len__(self) -> int:
        return len(self._items)

    def note_scheduled(self, value: Any) -> None:
        """Counts a step or batch; the same one again changes nothing."""
        if value is not self._latest:
            self._latest = value
            self.scheduled += 1

    def add(self, value: Waitable | None, deliver: Callable[[], None]) -> None:
        """Puts an event of the step scheduled last at the end of the queue.

        Args:
          value: what has to be there first; None for an event that only waits for
            those before it.
          deliver: tells the guest.
        """
        self._items.append(_Item(self.scheduled, value, deliver))

    def drain(self, max_lag: int | None = None) -> None:
        """Delivers what is ready, and waits for what is too far behind.

        Args:
          max_lag: in the place of the queue's own.
        """
        if self._is_delivering:
            return
        bound = self.max_lag if max_lag is None else max_lag
        self._is_delivering = True
        try:
            while self._items:
                head = self._items[0]
                is_due = self.scheduled - head.number >= bound
                if not (is_due or head.value is None or head.value.is_ready):
                    break
                # Taken off first: an event whose delivery fails is not repeated.
                self._items.popleft()
                head.deliver()
        finally:
            self._is_delivering = False

    def clear(self) -> None:
        """Forgets what was not delivered."""
        self._items.clear()
        self._latest = None
