"""A session whose end holds up nobody else."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Any

from absl import logging

from hookbridge.patching import InstanceMethods

# So long may closing take. An iterator of `tf.data` in the session can hold it up for
# a minute, with nothing left to do (docs/decisions/0005-iterators-die-young.md).
CLOSE_SECS = 3.0


def limit_close(session: Any, limit_secs: float = CLOSE_SECS) -> None:
    """Makes `session.close()` return in time, if need be before it is closed.

    What is left goes on on a thread, which the end of the process waits for.

    Args:
      session: a `tf.compat.v1.Session`; gets a `close` of its own.
      limit_secs: how long the caller waits.
    """
    reference = weakref.ref(session)
    begun = threading.Event()

    def close() -> None:
        session = reference()
        # A session that is deleted calls this too, perhaps when no thread can start.
        if session is None or begun.is_set():
            return
        begun.set()
        closing = _Closing(session)
        closing.start()
        closing.done.wait(limit_secs)
        if not closing.done.is_set():
            logging.warning(
                "hookbridge: closing the session takes longer than %g s and goes on in "
                "the background.",
                limit_secs,
            )
        elif closing.error is not None:
            raise closing.error

    InstanceMethods(session, {"close": close}).install()


class _Closing(threading.Thread):
    """Closes a session, and keeps it: TensorFlow must not delete it meanwhile."""

    def __init__(self, session: Any) -> None:
        # No daemon: a thread that comes back from TensorFlow while the interpreter
        # ends aborts the process.
        super().__init__(daemon=False, name="hookbridge_close")
        self._closed_session = session
        self.done = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        began = time.monotonic()
        session = self._closed_session
        try:
            type(session).close(session)
        except BaseException as e:
            self.error = e
        self.done.set()
        if time.monotonic() - began > CLOSE_SECS / 10:
            time.sleep(0.2)  # for the threads, of TensorFlow too, that it has let go
