"""Threads at the end of the process: those that work then, and those that it awaits."""

from __future__ import annotations

import atexit
import queue
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterable
from typing import Any

_MOST = 32
# How long the end of the process waits for the threads of `start_awaited`, together.
AWAITED_SECS = 5.0

# Each of these threads, with the event that ends it.
_awaited: weakref.WeakKeyDictionary[threading.Thread, threading.Event] = (
    weakref.WeakKeyDictionary()
)


def start_awaited(
    over: threading.Event, function: Callable[..., Any], *args: Any
) -> None:
    """Starts a daemon thread that calls TensorFlow; the process's end waits for it.

    The end sets `over` first, which asks the thread to end. A thread that comes back
    from TensorFlow while the interpreter ends would abort the process: `FATAL:
    exception not rethrown`, exit code 134 (docs/decisions/0006). A thread that a lost
    server keeps for longer than `AWAITED_SECS` is left behind.
    """
    if not _awaited:
        atexit.register(_wait)
    thread = threading.Thread(target=function, args=args, daemon=True)
    _awaited[thread] = over
    thread.start()


def _wait() -> None:
    deadline = time.monotonic() + AWAITED_SECS
    awaited = list(_awaited.items())
    for _, over in awaited:
        over.set()
    for thread, _ in awaited:
        thread.join(max(0.0, deadline - time.monotonic()))


class ExitThreads:
    """Threads that wait, from now on, for work at the end of the process.

    Python 3.12 starts none any more in the functions of `atexit`.
    """

    def __init__(self, count: int) -> None:
        self._work: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._serve, daemon=True)
            for _ in range(min(count, _MOST))
        ]
        for thread in self._threads:
            thread.start()

    def run(self, functions: Iterable[Callable[[], Any]], deadline: float) -> None:
        """Calls all functions, and ends the threads; waits until `deadline` at most.

        The deadline is one of `time.monotonic`.
        """
        for function in functions:
            self._work.put(function)
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _serve(self) -> None:
        while (function := self._work.get()) is not None:
            try:
                function()
            except Exception:  # the other calls are made all the same
                traceback.print_exc()
