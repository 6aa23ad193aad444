"""The end of a coordinator's wait for steps, and of its process."""

from __future__ import annotations

import atexit
import os
import sys
import time
import weakref
from collections.abc import Callable
from typing import Any

from hookbridge.ground import compat
from hookbridge.ground.processes import exit_codes
from hookbridge.ground.processes.exit_threads import ExitThreads

# After the process was asked to end, it waits this long without news from any worker.
PATIENCE_SECS = 3.0
JOIN_POLL_SECS = 1e-3


class Preemption:
    """Set by the preemption signal: the running fit stops after the current step."""

    def __init__(self) -> None:
        self.gave_up: bool = False
        # With it waits end, since all workers are gone.
        self.lost: Exception | None = None
        self._since: float | None = None

    def set(self) -> None:
        self._since = time.monotonic()

    def is_set(self) -> bool:
        return self._since is not None

    def wait_until(self, is_done: Callable[[], bool], poll_secs: float) -> bool:
        """Wait for something that workers do."""
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

# The longest delay of the process's end. TensorFlow's threads can wait much longer for
# a lost worker.
EXIT_SECS = 5.0

_strategies: weakref.WeakSet[Any] = weakref.WeakSet()


def end_with_threads(strategy: object) -> None:
    """Make the process wait at its end for the threads of its coordinator."""
    # TensorFlow leaves them running. A thread that still builds a worker's iterator
    # returns to an interpreter that is ending, and aborts the process (`FATAL:
    # exception not rethrown`). Then a successful job has exit code 134
    # (docs/decisions/0006).
    if not _strategies:
        atexit.register(_end_all, ExitThreads(1))
    _strategies.add(strategy)


def _end_all(exit_threads: ExitThreads) -> None:
    """End the threads of all coordinators, then the process with its code."""
    deadline = time.monotonic() + (0.5 if PREEMPTED.gave_up else EXIT_SECS)
    clusters = [
        cluster
        for strategy in list(_strategies)
        if (cluster := compat.coordinated_cluster(strategy)) is not None
    ]
    # A call may wait for a lock of a lost connection.
    exit_threads.run([c.stop for c in clusters], deadline)
    for thread in compat.coordinator_threads():
        thread.join(max(0.0, deadline - time.monotonic()))
    code = exit_code()
    if PREEMPTED.gave_up:
        # TensorFlow would wait for the worker that no longer responds.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    if code == exit_codes.PREEMPTED:
        exit_codes.end_with(code)


def exit_code() -> int:
    """Return the exit code of this process at its end, as far as it can be known."""
    error = getattr(sys, "last_value", None)
    if error is not None:
        return exit_codes.of_error(error)
    return exit_codes.PREEMPTED if PREEMPTED.is_set() else exit_codes.DONE
