"""A session that cannot be closed at once does not delay its process."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import tensorflow as tf
from fork_server import ForkServer

from hookbridge.jobs.loops.tasks.server import limit_close

v1 = tf.compat.v1


@pytest.mark.parametrize("kind", ["server", "local"])
def test_close_returns_before_a_step_that_nothing_can_end(kind: str) -> None:
    target = tf.distribute.Server.create_local_server().target
    began, let_go, ended = (threading.Event() for _ in range(3))

    def busy() -> float:
        began.set()
        let_go.wait()
        return 0.0

    with tf.Graph().as_default():
        step = v1.py_func(busy, [], tf.float32)
        other = tf.constant(1.0)
        session = v1.Session(target if kind == "server" else "")
        limit_close(session, limit_secs=0.5)

        def run() -> None:
            with pytest.raises((tf.errors.OpError, RuntimeError)):
                session.run(step)
                session.run(other)  # if the first run ended without an error
            ended.set()

        thread = threading.Thread(target=run)
        thread.start()
        began.wait()
        session.close()
        assert not ended.is_set()  # TensorFlow's own `close` waits for it
        let_go.set()
        thread.join()


SCRIPT = """
import tensorflow as tf
from hookbridge.jobs.loops.tasks.server import limit_close

with tf.Graph().as_default():
    sessions = [tf.compat.v1.Session() for _ in range(2)]
for session in sessions:
    limit_close(session)
    session.cycle = session
sessions[0].close()
print("closed")
"""


@pytest.mark.slow
def test_process_ends_whether_its_session_was_closed_or_not(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    log = tmp_path / "log"
    code = fork_server.start(["-c", SCRIPT], {}, log).wait()
    assert (code, log.read_text()) == (0, "closed\n")
