"""Limits how long the `close` of a session takes."""

from __future__ import annotations

import concurrent.futures
import sys
import threading
import time
import weakref
from typing import Any

from absl import logging

from hookbridge.patching import InstanceMethods

# How long closing may take. An iterator of `tf.data` in the session can delay it for a
# minute, with nothing left to do (docs/decisions/0005-iterators-die-young.md).
CLOSE_SECS = 3.0


def limit_close(session: Any, limit_secs: float = CLOSE_SECS) -> None:
    """Makes `session.close()` return in time, even if the session is not closed yet.

    A thread goes on closing it; the process does not end before that thread.
    """
    reference = weakref.ref(session)
    begun = threading.Event()

    def close() -> None:
        session = reference()
        # A deleted session calls this too, perhaps when threads can no longer start.
        if session is None or begun.is_set():
            return
        begun.set()
        closed: concurrent.futures.Future[None] = concurrent.futures.Future()
        # Not a daemon: a thread that returns from TensorFlow while the interpreter ends
        # would abort the process. It keeps the session alive meanwhile.
        threading.Thread(target=_close, args=(session, closed), daemon=False).start()
        try:
            error = closed.exception(limit_secs)
        except concurrent.futures.TimeoutError:
            logging.warning(
                "hookbridge: closing the session takes longer than %g s and goes on in "
                "the background.",
                limit_secs,
            )
        else:
            if error is not None and sys.exc_info()[0] is None:
                raise error  # not if the session closes because of another error

    InstanceMethods(session, {"close": close}).install()


def _close(session: Any, closed: concurrent.futures.Future[None]) -> None:
    began = time.monotonic()
    try:
        closed.set_result(type(session).close(session))
    except BaseException as e:
        closed.set_exception(e)
    if time.monotonic() - began > CLOSE_SECS / 10:
        time.sleep(0.2)  # lets threads end that waited for the session
