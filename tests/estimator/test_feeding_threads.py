"""The end of a process whose input function feeds a queue."""

from __future__ import annotations

from pathlib import Path

import pytest
from fork_server import ForkServer

# What is registered first is called last.
PROGRAM = """
import atexit
import threading

import numpy as np
import tensorflow as tf

TARGETS = ("(_run)", "(_close_on_stop)")


def feeding():
    return [t.name for t in threading.enumerate() if t.name.endswith(TARGETS)]


atexit.register(lambda: print("left at the end:", feeding()))
import hookbridge as hb

tf.compat.v1.disable_eager_execution()
input_fn = hb.estimator.v1.inputs.numpy_input_fn(
    {"x": np.zeros([20, 1])}, batch_size=2, shuffle=False, num_epochs=None
)
features = input_fn()
session = tf.compat.v1.train.MonitoredSession()
print(session.run(features["x"]).shape, len(feeding()))
"""


@pytest.mark.slow
def test_the_process_ends_after_the_threads_of_an_input_function(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    """One that came back from TensorFlow in an ending interpreter would abort it."""
    done = fork_server.run("-c", PROGRAM, folder=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == ["(2, 1) 2", "left at the end: []"]
