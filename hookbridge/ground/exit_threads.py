"""Threads for the functions of `atexit`: Python 3.12 starts none any more then."""

from __future__ import annotations

import queue
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any

_MOST = 32


class ExitThreads:
    """Threads that wait, from now on, for work at the end of the process."""

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
