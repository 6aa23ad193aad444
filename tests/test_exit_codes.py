"""What a process's exit code says to what started it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

import hookbridge as hb
from hookbridge.ground.processes import exit_codes

ROOT = Path(__file__).resolve().parents[1]
LOST = tf.errors.UnavailableError(None, None, "the other task is gone")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError(), 1),
        (hb.errors.ClusterError("its port is in use"), 1),
        (hb.errors.TaskLostError("it is gone"), 138),
        (LOST, 138),
        (tf.errors.OutOfRangeError(None, None, ""), 1),
        (KeyboardInterrupt(), 130),
        (SystemExit(), 0),
        (SystemExit(7), 7),
        (SystemExit("a message"), 1),
    ],
    ids=repr,
)
def test_every_error_has_a_code(error: BaseException, code: int) -> None:
    assert exit_codes.of_error(error) == code


def run(program: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", program]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("kind", "code"), [("TaskLostError", 138), ("ClusterError", 1)]
)
def test_an_uncaught_error_ends_the_process_with_its_code(kind: str, code: int) -> None:
    # Twice, as by two clusters of one program: the error is shown once.
    done = run(
        "import atexit; from hookbridge import errors\n"
        "from hookbridge.ground.processes import exit_codes as e\n"
        "e.use_for_errors(); e.use_for_errors(); atexit.register(print, 'at exit')\n"
        f"raise errors.{kind}('gone')"
    )
    assert (done.returncode, done.stdout) == (code, "at exit\n")
    assert done.stderr.count(f"hookbridge.errors.{kind}: gone") == 1


@pytest.mark.parametrize("stderr", ["", "sys.stderr.close();", "sys.stderr = None;"])
def test_a_process_that_is_ending_gets_another_code(stderr: str) -> None:
    done = run(
        "import atexit, sys; from hookbridge.ground.processes import exit_codes as e\n"
        "atexit.register(print, 'of the user')\n"
        f"atexit.register(e.end_with, 143); {stderr} sys.exit(0)"
    )
    assert (done.returncode, done.stdout) == (143, "of the user\n")


THREAD_IN_TENSORFLOW = """
import threading, time
import tensorflow as tf
from hookbridge import errors
from hookbridge.ground.processes import exit_codes, exit_threads


class SlowEnd:
    def __del__(self):
        time.sleep(2)  # the interpreter ends, and lets other threads run


def wait():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        queue = tf.queue.FIFOQueue(1, [tf.bool], shapes=[()])
        options = tf.compat.v1.RunOptions(timeout_in_ms=1500)
        try:
            began.set()
            session.run(queue.dequeue(), options=options)
        except tf.errors.DeadlineExceededError:
            time.sleep(0.1)


slow, began = SlowEnd(), threading.Event()
exit_codes.use_for_errors()
"""


@pytest.mark.parametrize(
    ("start", "error", "code"),
    [
        ("threading.Thread(target=wait, daemon=True).start()", "TaskLostError", 138),
        ("exit_threads.start_awaited(threading.Event(), wait)", "ClusterError", 1),
    ],
)
def test_a_thread_in_tensorflow_does_not_abort_the_end(
    start: str, error: str, code: int
) -> None:
    end = f"{start}; began.wait(); raise errors.{error}('gone')"
    assert run(THREAD_IN_TENSORFLOW + end).returncode == code
