"""Calls that a newer TensorFlow refuses, and that mean what they did under `run`."""

from __future__ import annotations

from pathlib import Path

import pytest
from fork_server import ForkServer
from launching import output_of

READS = """
import tensorflow as tf

def read():
    files = tf.train.string_input_producer(["lines.txt"], num_epochs=1)
    return tf.TextLineReader().read_up_to(files, 2)[1]

lines = []
for number in range(2):
    with tf.device("/gpu:%d" % number):
        lines.append(read())
config = tf.ConfigProto(allow_soft_placement=True)
with tf.Session(config=config) as session:
    session.run(tf.local_variables_initializer())
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    print([session.run(tower).tolist() for tower in lines * 2])
    coordinator.request_stop()
    coordinator.join(threads)
"""


@pytest.mark.slow
def test_a_queue_reader_for_missing_gpus_is_on_the_cpu(
    tmp_path: Path, launcher: ForkServer
) -> None:
    (tmp_path / "lines.txt").write_text("a\nb\nc\n")
    output = output_of(launcher, tmp_path, READS)
    assert output == "[[b'a', b'b'], [b'a', b'b'], [b'c'], [b'c']]\n"
