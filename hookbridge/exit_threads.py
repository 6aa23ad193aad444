"""Threads for the functions of `atexit`: Python 3.12 starts none any more then."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

_MOST = 32


class ExitThreads:
    """Threads that wait, from now on, for work at the end of the process."""

    def __init__(self, count: int) -> None:
        self._work: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for _ in range(min(count, _MOST)):
            threading.Thread(target=self._serve, daemon=True).start()

    def run(self, functions: Iterable[Callable[[], Any]], deadline: float) -> None:
        """Calls all functions, and waits for them until `deadline` of the clock."""
        calls = []
        for function in functions:
            is_done = threading.Event()
            calls.append(is_done)
            self._work.put((function, is_done))
        for is_done in calls:
            is_done.wait(max(0.0, deadline - time.monotonic()))

    def _serve(self) -> None:
        while True:
            function, is_done = self._work.get()
            try:
                function()
            finally:
                is_done.set()
