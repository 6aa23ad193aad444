"""The main thread's step, and what wakes that thread or ends its process."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable

from hookbridge import errors
from hookbridge.ground import exit_codes

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
        self.began: float | None = None
        self.interrupted: bool = False
        # Releases one worker that waits in `SyncReplicasOptimizer`.
        self.let_one_through: Callable[[], None] | None = None
        # Ends any other step; None if steps must not be ended.
        self.interrupt: Callable[[], None] | None = None

    def release_by(self, call: Callable[[], None]) -> None:
        """Replaces `let_one_through`."""
        self.let_one_through = call

    def wake(self, over: threading.Event) -> None:
        """After a stop, wakes the main thread if it waits for other processes."""
        if self.let_one_through is not None:
            self.let_one_through()
        began = self.began
        if over.wait(INTERRUPT_SECS) or began is None or self.began != began:
            return
        if self.interrupt is not None:
            self.interrupted = True
            self.interrupt()

    def is_stalled(self) -> bool:
        """Whether a step takes so long that it may wait for a worker that is gone."""
        return self.began is not None and time.monotonic() - self.began > STALL_SECS


def last_resort(error: errors.ClusterError, over: threading.Event) -> None:
    """Ends the process if the main thread does not do so after an error.

    Nothing is sure to wake a main thread that waits inside TensorFlow for a lost
    server. A process that ends like this is better than one that hangs.
    """
    if not over.wait(LAST_RESORT_SECS):
        sys.stderr.write(f"hookbridge: ClusterError: {error}\n")
        sys.stderr.flush()
        os._exit(exit_codes.LOST)
