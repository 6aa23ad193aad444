"""`LocalCluster` and its output in this process."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import pytest

from hookbridge.jobs.loops.tasks import local_cluster
from hookbridge.jobs.loops.tasks.guard import Guard
from hookbridge.jobs.loops.tasks.local_cluster import LocalCluster
from hookbridge.jobs.loops.tasks.local_task import LocalTask
from hookbridge.jobs.loops.tasks.output import Outputs

ONE_TENSORFLOW = True


def test_a_signal_reaches_the_task_that_is_being_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its process runs, but the launcher does not have it in its list yet."""
    started: list[LocalTask] = []

    class Interrupted(LocalTask):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            started.append(self)
            if len(started) == 2:
                os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(local_cluster, "LocalTask", Interrupted)
    cluster = LocalCluster(num_workers=2, num_ps=0)
    code = cluster.run([sys.executable, "-c", "import time; time.sleep(600)"])
    assert code == 128 + signal.SIGTERM
    # None was killed, and none was started after the signal.
    assert [task.process.returncode for task in started] == [-signal.SIGTERM] * 2


def test_what_ended_tasks_have_written_is_shown_however_late_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pipes = []
    for text in ("a result\n", "a warning\n"):
        reads, writes = os.pipe()
        os.write(writes, text.encode())
        os.close(writes)
        pipes.append(os.fdopen(reads, "rb"))
    outputs = Outputs("")
    outputs.follow("chief 0", pipes)
    outputs.drain(0.0)
    outputs.close()
    assert capsys.readouterr() == ("[chief 0] a result\n", "[chief 0] a warning\n")
    for pipe in pipes:
        pipe.close()


def test_a_task_ends_with_a_launcher_that_is_killed_at_once() -> None:
    """Its guard knows of the task before the program runs."""
    guard = Guard(grace_secs=0.0)
    task = LocalTask("worker", ["sleep", "600"], {}, guard)
    guard._socket.close()  # as the end of the launcher does
    assert task.process.wait() == -signal.SIGKILL
    guard.close()
    for pipe in (task.process.stdout, task.process.stderr):
        assert pipe is not None
        pipe.close()


def test_a_task_starts_though_somebody_has_killed_its_guard() -> None:
    guard = Guard(grace_secs=0.0)
    guard._process.kill()
    guard._process.wait()
    task = LocalTask("worker", ["true"], {}, guard)
    assert task.process.communicate() == (b"", b"")
    assert task.exit_code == 0
    guard.close()
