"""In which order the files of a folder are written: by one writer at a time.

A saver may write before it returns, or give its values to the thread of this process.
In the first case it waits for what the thread still has to write into the same folder.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

Write = Callable[[], Any]


class WriteOrder:
    """The order of a checkpoint, of its state, and of their second writing.

    This class is for a checkpoint that is written before its writer returns.

    Args:
      prefix: the path of the checkpoint without suffix.
    """

    def __init__(self, prefix: str) -> None:
        self._folder = _folder_of(prefix)
        # Whether nothing of the checkpoint is on the disk yet.
        self.is_held: bool = False

    def write_state(self, write: Write) -> None:
        """Write the state, which is on the disk before the checkpoint is."""
        self.then(write)

    def then(self, write: Write) -> None:
        """Write something after all that came before."""
        _thread.wait(self._folder)
        write()

    def release(self) -> None:
        """Write what is held, once callbacks have had all events of the step."""


class InThread(WriteOrder):
    """The order of a checkpoint that the thread writes once its step is over.

    Until `release` its values and its state are held in memory: if the process is
    killed before, the checkpoint is not there.

    Args:
      prefix: the path of the checkpoint without suffix.
      note: called with each `Future` of the thread.
    """

    def __init__(self, prefix: str, note: Callable[[Future[Any]], None]) -> None:
        super().__init__(prefix)
        self._note = note
        self._state: Write | None = None
        self._values: Write | None = None
        self.is_held = True
        _thread.held.add(self)

    def write_values(self, write: Write) -> None:
        """Write the checkpoint, once `release` was called."""
        if self.is_held:
            self._values = write
        else:
            self.then(write)

    def write_state(self, write: Write) -> None:
        """Write the state before the checkpoint, once `release` was called."""
        if self.is_held:
            self._state = write
        else:
            self.then(write)

    def then(self, write: Write) -> None:
        """Give the thread something to write after all that came before."""
        self._note(_thread.submit(self._folder, write))

    def release(self) -> None:
        """Give the thread what is held, once callbacks have had all of the step."""
        _thread.held.discard(self)
        if not self.is_held:
            return
        self.is_held = False
        for write in (self._state, self._values):
            if write is not None:
                self.then(write)
        self._state = self._values = None


class _Thread:
    """The thread of this process that writes, in the order of the calls."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all that is to be written: a forked process has no thread."""
        # Of steps whose events are not all delivered.
        self.held: set[InThread] = set()
        self._pool: ThreadPoolExecutor | None = None
        self._unfinished: dict[Future[Any], str] = {}
        self._lock = threading.Lock()

    def submit(self, folder: str, write: Write) -> Future[Any]:
        """Write something into a folder, after all that was submitted before."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, "hookbridge-save")
        try:
            future = self._pool.submit(write)
        except RuntimeError:  # the interpreter ends, and starts no thread any more
            return _done_future(write)
        self._unfinished[future] = folder
        future.add_done_callback(lambda done: self._unfinished.pop(done, None))
        return future

    def wait(self, folder: str | None) -> None:
        """Wait for what is still to be written into a folder; None: into any."""
        wait(
            [
                future
                for future, its_folder in list(self._unfinished.items())
                if folder is None or its_folder == folder
            ]
        )


def _done_future(write: Write) -> Future[Any]:
    """Call a function, and return what a thread would return that has called it."""
    future: Future[Any] = Future()
    try:
        future.set_result(write())
    except Exception as e:
        future.set_exception(e)
    return future


_thread = _Thread()
os.register_at_fork(after_in_child=_thread.reset)


def wait_for_writes(prefix: str | None = None) -> None:
    """Wait until the thread writes no checkpoint.

    Args:
      prefix: the path of a checkpoint, for whose folder is waited; None: for all.
    """
    _thread.wait(None if prefix is None else _folder_of(prefix))


def release_all() -> None:
    """Write all that is held, of runs that an error has ended, and wait for it."""
    for order in list(_thread.held):
        order.release()
    wait_for_writes()


def _folder_of(prefix: str) -> str:
    folder = os.path.dirname(prefix)
    return folder if "://" in folder else os.path.abspath(folder)
