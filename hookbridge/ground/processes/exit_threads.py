"""Threads at the end of the process: those that work then, and those that it awaits."""

from __future__ import annotations

import atexit
import functools
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

# Each of these threads, with what asks it to end.
_awaited: weakref.WeakKeyDictionary[threading.Thread, Callable[[], object]] = (
    weakref.WeakKeyDictionary()
)


def start_awaited(
    over: threading.Event, function: Callable[..., Any], *args: Any
) -> None:
    """Start a daemon thread that calls TensorFlow; the process's end waits for it.

    A thread that comes back from TensorFlow while the interpreter ends would abort the
    process: `FATAL: exception not rethrown`, exit code 134 (docs/decisions/0006). A
    thread that a lost server keeps for longer than `AWAITED_SECS` is left behind.

    Args:
      over: is set by the process's end first, which asks the thread to end.
      function: what the thread calls.
      *args: its arguments.
    """
    thread = threading.Thread(target=function, args=args, daemon=True)
    await_at_end(thread, over.set)
    thread.start()


def await_at_end(thread: threading.Thread, ask: Callable[[], object]) -> None:
    """Make the process's end wait for a thread of others, as for an awaited one.

    Args:
      thread: A daemon thread that calls TensorFlow.
      ask: Asks the thread to end; the process's end calls it first.
    """
    _wait_at_end()
    _awaited[thread] = ask


@functools.cache
def _wait_at_end() -> None:
    atexit.register(_wait)


def _wait() -> None:
    deadline = time.monotonic() + AWAITED_SECS
    awaited = [(thread, ask) for thread, ask in _awaited.items() if thread.is_alive()]
    for _, ask in awaited:
        ask()
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
        """Call all functions, and end the threads; wait until `deadline` at most.

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
            except Exception:  # keep going with the other calls
                traceback.print_exc()
