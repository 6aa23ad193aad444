"""SIGTERM of a process is no SIGTERM of its parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time

from hookbridge.ground.processes.signals import on_sigterm

ONE_TENSORFLOW = True


def test_a_forked_process_that_is_terminated_ends_alone() -> None:
    """As the processes of a `multiprocessing.Pool` do at its end."""
    stopped = threading.Event()
    with on_sigterm(stopped.set):
        context = multiprocessing.get_context("fork")
        begun = context.Event()

        def sleep() -> None:
            begun.set()
            time.sleep(60)

        child = context.Process(target=sleep)
        child.start()
        begun.wait()
        child.terminate()
        child.join()
        assert child.exitcode == -signal.SIGTERM
        assert not stopped.wait(0.5)
        os.kill(os.getpid(), signal.SIGTERM)
        stopped.wait()
