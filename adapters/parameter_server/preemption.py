"""Ends a coordinator's wait for steps: on a preemption, or when workers are lost."""

from __future__ import annotations

import time
from collections.abc import Callable

# After the process was asked to end, it waits this long without news from any worker.
PATIENCE_SECS = 3.0
JOIN_POLL_SECS = 1e-3


class Preemption:
    """Set by the preemption signal: the running fit stops after the current step."""

    def __init__(self) -> None:
        self.gave_up = False
        self.lost: Exception | None = None
        self._since: float | None = None

    def set(self) -> None:
        self._since = time.monotonic()

    def is_set(self) -> bool:
        return self._since is not None

    def wait_until(self, is_done: Callable[[], bool], poll_secs: float) -> bool:
        """Waits for something that workers do."""
        while not is_done():
            if self.lost is not None:
                raise self.lost
            if self._since and time.monotonic() - self._since > PATIENCE_SECS:
                self.gave_up = True
                return False
            time.sleep(poll_secs)
        if self._since:
            self._since = time.monotonic()
        return True


PREEMPTED = Preemption()
