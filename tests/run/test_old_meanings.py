"""Calls that a newer TensorFlow refuses, and that mean what they did under `run`."""

from __future__ import annotations

from pathlib import Path

import pytest
from fork_server import ForkServer
from launching import ROOT, output_of

from hookbridge.old_programs import rewrite

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
    tmp_path: Path, launcher: ForkServer, fork_server: ForkServer
) -> None:
    """Under `run`, and rewritten."""
    (tmp_path / "lines.txt").write_text("a\nb\nc\n")
    expected = "[[b'a', b'b'], [b'a', b'b'], [b'c'], [b'c']]\n"
    assert output_of(launcher, tmp_path, READS) == expected
    rewritten = rewrite(READS)
    assert "hb.legacy.TextLineReader()" in rewritten.source and not rewritten.todos
    program = tmp_path / "new.py"
    program.write_text(rewritten.source)
    done = fork_server.run(str(program), folder=tmp_path, PYTHONPATH=str(ROOT))
    assert done.stdout == expected, done.stderr
