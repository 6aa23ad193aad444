"""The main thread's step, and what wakes that thread or ends its process."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable

from hookbridge import errors
from hookbridge.ground.processes import exit_codes

# If a worker's step goes on after a stop, it is interrupted after this time.
INTERRUPT_SECS = 4.0
# If nothing wakes the main thread after an error, the process exits after this time.
LAST_RESORT_SECS = 8.0
# How long a synchronous step may take while a worker is gone. After that another
# worker is released in its place.
STALL_SECS = 3.0


class StepWatch:
    """The main thread's current step, and how to wake that thread."""

    def __init__(self) -> None:
        self._began: float | None = None  # None between two steps
        self._interrupt: Callable[[], None] | None = None
        self.is_interrupted: bool = False
        self.let_one_through: Callable[[], None] | None = None

    def step_begins(self) -> None:
        """Note that the main thread begins a step."""
        self._began = time.monotonic()

    def step_is_over(self) -> None:
        """Note that the main thread has left its step of TensorFlow."""
        self._began = None

    def release_by(self, let_one_through: Callable[[], None]) -> None:
        """Set what releases one worker that waits in `SyncReplicasOptimizer`."""
        self.let_one_through = let_one_through

    def interrupt_by(self, interrupt: Callable[[], None] | None) -> None:
        """Set what ends any other step; None if steps must not be ended."""
        self._interrupt = interrupt

    def wake(self, over: threading.Event) -> None:
        """Wake the main thread after a stop, if it waits for other processes."""
        if self.let_one_through is not None:
            self.let_one_through()
        began = self._began
        if over.wait(INTERRUPT_SECS) or began is None or self._began != began:
            return
        if self._interrupt is not None:
            self.is_interrupted = True
            self._interrupt()

    def is_stalled(self) -> bool:
        """Return whether a step takes so long that it may wait for a lost worker."""
        began = self._began
        return began is not None and time.monotonic() - began > STALL_SECS


def last_resort(error: errors.ClusterError, over: threading.Event) -> None:
    """End the process if the main thread does not do so after an error.

    Nothing is sure to wake a main thread that waits inside TensorFlow for a lost
    server. A process that ends like this is better than one that hangs.
    """
    if not over.wait(LAST_RESORT_SECS):
        sys.stderr.write(f"hookbridge: ClusterError: {error}\n")
        sys.stderr.flush()
        os._exit(exit_codes.LOST)
