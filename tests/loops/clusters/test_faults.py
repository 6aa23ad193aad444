"""Jobs whose processes are killed, preempted, late or slow."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
import tensorflow as tf
from cluster_processes import ALL, Job, job
from fork_server import ForkServer
from old_checkpoint import OLD_STEP, variables, write_checkpoint
from side_by_side import beside_others

from hookbridge.ground.processes import exit_codes
from hookbridge.jobs.loops.clusters.serve import AFTER_CHIEF_UNSEEN_SECS

SYNCHRONOUS = ("session_job.py", "aggregate=2")


def wait_for_steps(it: Job) -> None:
    """Returns when both workers are in the middle of their training."""
    for task in ("worker 0", "worker 1"):
        it.wait_for(task, "step", 10)


@beside_others()
def test_killed_worker_stalls_nobody_and_comes_back(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    with job(tmp_path, *SYNCHRONOUS, server=fork_server) as it:
        wait_for_steps(it)
        it.send("worker 1", signal.SIGKILL)
        it.wait(["worker 1"])
        before = len(it.events("worker 0", "step"))
        # Now both gradients of each step come from the chief.
        it.wait_for("worker 0", "step", before + 10)
        it.own["worker 1"] = ["request_stop_at=10"]
        it.start("worker 1")
        codes = it.wait()
    assert set(codes.values()) == {0}, it.logs()
    assert len(it.events("worker 1", "session")) == 2
    assert it.idle_secs_to_end() <= 10, it.logs()


@beside_others("worker 0", "ps 0")
def test_without_server_or_chief_everybody_ends_with_an_error(
    killed: str, tmp_path: Path, fork_server: ForkServer
) -> None:
    with job(tmp_path, *SYNCHRONOUS, "lost_secs=3", server=fork_server) as it:
        wait_for_steps(it)
        it.send(killed, signal.SIGKILL)
        codes = it.wait()
    assert codes.pop(killed) == -signal.SIGKILL
    assert set(codes.values()) == {exit_codes.LOST}, it.logs()
    name = killed.replace(" ", "` ")
    for task in codes:
        assert "hookbridge.errors.TaskLostError" in it.log(task)
        assert f"`{name}" in it.log(task)


@beside_others()
def test_a_preempted_job_saves_and_the_next_run_goes_on(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    saved = tmp_path / "saved"
    names = write_checkpoint(saved)
    reached, all_batches = OLD_STEP, 0
    for preempted, arguments in (("worker 0", ("aggregate=2",)), ("ps 0", ())):
        where = tmp_path / preempted
        with job(
            *(where, "session_job.py", f"dir={saved}", *arguments),
            server=fork_server,
        ) as it:
            wait_for_steps(it)
            if preempted == "ps 0":
                # Nobody waits for a worker that was killed for good.
                looks = len(it.events("ps 0", "looked"))
                it.wait_for("ps 0", "looked", looks + 1)  # and has seen it
                it.send("worker 1", signal.SIGKILL)
                it.wait(["worker 1"])
            it.send(preempted, signal.SIGTERM)
            codes = it.wait()
        killed = codes.pop("worker 1")
        assert set(codes.values()) == {exit_codes.PREEMPTED}, it.logs()
        assert it.events("worker 0", "session")[0]["step"] == reached
        chief, served = (it.events(t, "left")[0] for t in ("worker 0", "ps 0"))
        assert f"{preempted}: it received SIGTERM" in chief["reason"]
        assert served["idle"] - chief["idle"] < AFTER_CHIEF_UNSEEN_SECS, it.logs()
        expected = exit_codes.PREEMPTED if preempted == "worker 0" else -signal.SIGKILL
        assert killed == expected
        ended = it.events("worker 0", "end")[0]["step"]
        batches = it.events("worker 0", "train_end")[0]["batches"]
        # The callback continues its count from the run before.
        assert batches > all_batches
        before, all_batches = reached, batches
        reached = int(tf.train.latest_checkpoint(str(saved)).rpartition("-")[2])
        # While hooks get `end`, a thread of the chief may still apply gradients.
        assert before < ended - 1 <= reached <= ended
        assert variables(saved) == names

    last = f"last_step={reached + 15}"
    with job(
        tmp_path / "last", "session_job.py", f"dir={saved}", last, server=fork_server
    ) as it:
        codes = it.wait()
    assert set(codes.values()) == {0}, it.logs()
    assert it.events("worker 0", "session")[0]["step"] == reached
    steps = it.events("worker 0", "end")[0]["step"] - reached
    batches = it.events("worker 0", "train_end")[0]["batches"]
    assert batches > max(steps, all_batches)


@pytest.mark.one_tensorflow
@beside_others()
def test_killed_chief_comes_back_and_lost_sessions_do(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    # The chief begins when worker 1 has a session, so worker 1 has time to lose it.
    own = {"worker 0": ["with_peer=worker_1.jsonl"], "worker 1": ["abort_at=15"]}
    arguments = ("last_step=100", "save_steps=5", f"dir={tmp_path}/m")
    with job(tmp_path, *SYNCHRONOUS, *arguments, own=own, server=fork_server) as it:
        it.wait_for("worker 0", "first_batch")
        # The kill comes after a checkpoint, and before the chief loses its session.
        while str(tf.train.latest_checkpoint(f"{tmp_path}/m")).endswith("ckpt-0"):
            time.sleep(0.05)
        it.send("worker 0", signal.SIGKILL)
        it.wait(["worker 0"])
        it.own["worker 0"] = ["abort_at=10"]
        it.start("worker 0")
        codes = it.wait()
    assert set(codes.values()) == {0}, it.logs()
    assert it.idle_secs_to_end() <= 10, it.logs()
    # The chief goes on from its last checkpoint, after the kill and after the loss.
    first, again, third = (noted["step"] for noted in it.events("worker 0", "session"))
    assert first == 0 < again <= third
    assert len(it.events("worker 1", "session")) == 2
    assert it.events("worker 0", "end")[0]["step"] >= 100


@pytest.mark.one_tensorflow
@beside_others()
def test_late_and_slow_worker(tmp_path: Path, fork_server: ForkServer) -> None:
    own = {"worker 1": ["step_secs=0.3", "request_stop_at=4"]}
    start, slow = ("ps 0", "worker 0"), "step_secs=0.1"
    with job(
        tmp_path, *SYNCHRONOUS, slow, own=own, start=start, server=fork_server
    ) as it:
        it.wait_for("worker 0", "step", 5)  # the chief begins without it
        it.start("worker 1")
        codes = it.wait()
    assert codes == dict.fromkeys(ALL, 0), it.logs()
    # It waits less than the 30 seconds of TensorFlow's own worker, and takes part.
    start_of_late, session_of_late = (
        it.events("worker 1", event)[0]["idle"] for event in ("start", "session")
    )
    assert session_of_late - start_of_late < 20
    assert len(it.events("worker 1", "step")) == 4
    assert it.idle_secs_to_end() <= 10, it.logs()


@pytest.mark.one_tensorflow
@beside_others()
def test_a_marker_that_cannot_be_written_does_not_hide_the_error_of_a_hook(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    saved = tmp_path / "saved"
    saved.mkdir()
    # Writing raises an OSError, as on a full disk.
    (saved / "hookbridge_stop.json.part").mkdir()
    with job(
        *(tmp_path, "estimator_job.py", f"dir={saved}", "aggregate=2"),
        tasks=("ps 0", "chief 0", "worker 0"),
        # A worker that comes after the end would find no marker of it.
        own={"chief 0": ["raise_at=15", "with_peer=worker_0.jsonl"]},
        server=fork_server,
    ) as it:
        codes = it.wait()
    # The other two end at once: the chief has told them that it leaves.
    assert set(codes.values()) == {exit_codes.FAILED}, it.logs()
    log = (tmp_path / "chief_0.log").read_text()
    assert log.splitlines()[-1] == "ValueError: the hook of this worker fails"
    assert "evaluators cannot be stopped" in log


@beside_others()
def test_the_hook_alone_ends_it(tmp_path: Path, fork_server: ForkServer) -> None:
    own = {"worker 1": ["request_stop_at=20"], "worker 0": ["late_secs=1.5"]}
    with job(tmp_path, *SYNCHRONOUS, "plain=1", own=own, server=fork_server) as it:
        codes = it.wait(["worker 0", "worker 1"])
    assert codes == {"ps 0": None, "worker 0": 0, "worker 1": 0}, it.logs()
    assert it.idle_secs_to_end() <= 10, it.logs()
    began = it.events("worker 0", "session")[0]["idle"]
    # TensorFlow's own worker looks again after 30 seconds.
    assert it.events("worker 1", "session")[0]["idle"] - began < 20
