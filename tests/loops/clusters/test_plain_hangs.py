"""Jobs of plain TensorFlow that hang at the end of a cluster, or at its start.

Each job is watched for a few seconds only. In that time a `SessionCluster` would have
ended (`test_endings.py`) or begun.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import pytest
from cluster_processes import Job, job
from fork_server import ForkServer

WATCH_SECS = 6.0
TWO = ("ps 0", "worker 0", "worker 1")
ONE = ("ps 0", "worker 0")


@pytest.fixture(scope="module")
def hanging(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> Any:
    """Three jobs side by side, watched once."""
    folder = tmp_path_factory.mktemp("plain")
    with contextlib.ExitStack() as stack:

        def start(name: str, *arguments: str, **options: Any) -> Job:
            context = job(
                folder / name, "plain_job.py", *arguments, server=fork_server, **options
            )
            return stack.enter_context(context)

        # Worker 1 stops alone, and the chief would need its gradients. Worker 1 starts
        # when the chief is ready: otherwise it would look again only after 30 seconds.
        stops = {"worker 1": ["request_stop_at=20", "late_secs=4"]}
        chief = start("chief", "aggregate=2", tasks=TWO, own=stops)
        # The only worker, so that only closing its own session can delay it.
        close = start("close", "aggregate=1", "last_step=20", tasks=ONE)
        # The chief starts after the worker has looked once.
        late = {"worker 0": ["late_secs=3"]}
        poll = start("poll", tasks=TWO, own=late)
        chief.wait_for("worker 1", "stopped")
        close.wait_for("worker 0", "stopped")
        poll.wait_for("worker 0", "step")
        time.sleep(WATCH_SECS)
        for each in (chief, close, poll):
            each.poll()
        yield {"chief": chief, "close": close, "poll": poll}


@pytest.mark.slow
def test_chief_waits_for_the_gradients_of_a_worker_that_has_stopped(
    hanging: Any,
) -> None:
    it = hanging["chief"]
    assert not it.events("worker 0", "stopped"), it.logs()
    assert "worker 0" not in it.ended


@pytest.mark.slow
def test_close_waits_for_the_thread_of_the_chief(hanging: Any) -> None:
    it = hanging["close"]
    assert it.events("worker 0", "stopped") and not it.events("worker 0", "left")
    assert "worker 0" not in it.ended


@pytest.mark.slow
def test_worker_does_not_see_that_the_chief_is_ready(hanging: Any) -> None:
    it = hanging["poll"]
    (waiting,) = it.events("worker 1", "waiting")
    (ready,) = it.events("worker 0", "session")
    it.poll()
    # The worker looks again after 30 seconds, which may have passed by now.
    for session in it.events("worker 1", "session"):
        assert session["at"] - waiting["at"] >= 29
        assert session["at"] - ready["at"] > 5
    assert it.events("worker 0", "step")


@pytest.mark.slow
def test_parameter_servers_stay(hanging: Any) -> None:
    assert not any("ps 0" in it.ended for it in hanging.values())


@pytest.mark.slow
def test_the_hook_alone_ends_it(tmp_path: Path, fork_server: ForkServer) -> None:
    own = {"worker 1": ["request_stop_at=20"], "worker 0": ["late_secs=3"]}
    arguments = ("aggregate=2", "group_stop=1")
    with job(
        *(tmp_path, "plain_job.py", *arguments), tasks=TWO, own=own, server=fork_server
    ) as it:
        codes = it.wait(["worker 0", "worker 1"])
    assert codes == {"ps 0": None, "worker 0": 0, "worker 1": 0}, it.logs()
    assert it.idle_secs_to_end() <= 10, it.logs()
    began = it.events("worker 0", "session")[0]["idle"]
    # TensorFlow's own worker looks again after 30 seconds.
    assert it.events("worker 1", "session")[0]["idle"] - began < 20
