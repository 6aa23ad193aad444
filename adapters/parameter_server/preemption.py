"""Ends a coordinator's wait for steps: on a preemption, or when workers are lost."""

from __future__ import annotations

import time
from collections.abc import Callable

import tensorflow as tf

# After the process was asked to end, it waits this long without news from any worker.
PATIENCE_SECS = 3.0
JOIN_POLL_SECS = 1e-3


class Preemption:
    """Set by the preemption signal: the running fit stops after the current step.

    Attributes:
      gave_up: whether a step was given up; then a call to a worker is still open.
      lost: the error about workers that were gone for too long; it ends every wait.
    """

    def __init__(self) -> None:
        self.gave_up = False
        self.lost: Exception | None = None
        self._since: float | None = None

    def set(self) -> None:
        """Called when the process is to end."""
        self._since = time.monotonic()

    def is_set(self) -> bool:
        """Whether the process is to end."""
        return self._since is not None

    def wait_until(self, is_done: Callable[[], bool], poll_secs: float) -> bool:
        """Waits for something that workers do.

        Returns:
          Whether it is done. False only after `set`, if nothing was done for long: a
          worker that no longer responds must not keep the process from saving and
          ending.

        Raises:
          Exception: `lost`.
        """
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


def wait_for_step(is_ready: Callable[[], bool], poll_secs: float) -> None:
    """Waits for a step's values.

    Raises:
      tf.errors.OutOfRangeError: the step was given up, as at the end of the data.
    """
    if not PREEMPTED.wait_until(is_ready, poll_secs):
        raise tf.errors.OutOfRangeError(None, None, "The step was given up.")
