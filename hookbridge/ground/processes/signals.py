"""SIGTERM as a stop: schedulers send it to a task before they end it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def on_sigterm(call: Callable[[], None]) -> Iterator[None]:
    """Call `call` on another thread at the first SIGTERM.

    A Python handler runs only when the main thread returns from TensorFlow, and a step
    there may never end. The second SIGTERM has its usual effect. Outside the main
    thread this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.getsignal(signal.SIGTERM)

    def wait() -> None:
        while number := os.read(reader, 1):
            if number[0] == signal.SIGTERM:
                call()
        os.close(reader)

    def once(*_: object) -> None:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)

    def leave() -> None:  # in a forked process, which would write into our pipe
        if signal.getsignal(signal.SIGTERM) is once:
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)
            signal.set_wakeup_fd(-1)

    os.register_at_fork(after_in_child=leave)
    old_fd = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, once)
    thread = threading.Thread(target=wait, name="sigterm", daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)
        signal.set_wakeup_fd(old_fd)
        os.close(writer)
        thread.join(1.0)  # `call` may take longer
