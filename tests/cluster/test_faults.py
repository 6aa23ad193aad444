"""Processes that are killed, preempted, late or slow."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
import tensorflow as tf
from cluster_processes import Job, job

v1 = tf.compat.v1


def wait_for_steps(it: Job) -> None:
    """Returns when both workers are in the middle of it."""
    for task in ("worker 0", "worker 1"):
        it.wait_for(task, "first_batch")
    time.sleep(0.5)


@pytest.mark.slow
def test_killed_worker_stalls_nobody_and_comes_back(tmp_path: Path) -> None:
    arguments = ("aggregate=2", "last_step=250", "lost_secs=3")
    with job(tmp_path, "session_job.py", *arguments) as it:
        wait_for_steps(it)
        it.send("worker 1", signal.SIGKILL)
        it.wait(["worker 1"])
        before = len(it.events("worker 0", "step"))
        # Both gradients of each step come from the chief now.
        deadline = time.monotonic() + 30
        while len(it.events("worker 0", "step")) < before + 20:
            assert time.monotonic() < deadline, it.logs()
            time.sleep(0.1)
        it.start("worker 1")
        codes = it.wait(timeout_secs=60)
    assert set(codes.values()) == {0}, it.logs()
    assert len(it.events("worker 1", "session")) == 2
    assert it.secs_to_end() <= 10, it.logs()


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["ps 0", "worker 0"])
def test_without_server_or_chief_everybody_ends_with_an_error(
    tmp_path: Path, killed: str
) -> None:
    with job(tmp_path, "session_job.py", "aggregate=2", "lost_secs=3") as it:
        wait_for_steps(it)
        it.send(killed, signal.SIGKILL)
        since = time.monotonic()
        codes = it.wait(timeout_secs=60)
    assert codes.pop(killed) == -signal.SIGKILL
    assert set(codes.values()) == {1}, it.logs()
    assert it.secs_to_end(since) <= 60
    name = killed.replace(" ", "` ")
    for task in codes:
        assert "hookbridge.errors.ClusterError" in it.log(task)
        assert f"`{name}" in it.log(task)


def write_checkpoint(folder: Path) -> list[str]:
    """A checkpoint at step 7 of the same model on plain TensorFlow; its variables."""
    with tf.Graph().as_default():
        slope = v1.get_variable("slope", [], initializer=v1.zeros_initializer())
        offset = v1.get_variable("offset", [], initializer=v1.zeros_initializer())
        step = v1.train.get_or_create_global_step()
        loss = (slope * 2.0 + offset - 1.0) ** 2
        v1.train.AdamOptimizer(0.01).minimize(loss, global_step=step)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(step.assign(7))
            v1.train.Saver().save(session, str(folder / "model.ckpt"), global_step=7)
    return variables(folder)


def variables(folder: Path) -> list[str]:
    return [name for name, _ in tf.train.list_variables(str(folder))]


@pytest.mark.slow
def test_preempted_chief_saves_and_the_next_run_goes_on(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    names = write_checkpoint(saved)
    arguments = ("aggregate=2", f"dir={saved}")
    with job(tmp_path / "first", "session_job.py", *arguments) as first:
        wait_for_steps(first)
        first.send("worker 0", signal.SIGTERM)
        codes = first.wait(timeout_secs=60)
    assert set(codes.values()) == {0}, first.logs()
    assert first.events("worker 0", "session")[0]["step"] == 7
    (left,) = first.events("worker 1", "left")
    assert "worker 0: it received SIGTERM" in left["reason"]
    reached = first.events("worker 0", "end")[0]["step"]
    batches = first.events("worker 0", "train_end")[0]["batches"]
    checkpoint = tf.train.latest_checkpoint(str(saved))
    assert checkpoint == str(saved / f"model.ckpt-{reached}")
    assert variables(saved) == names

    last = f"last_step={reached + 15}"
    with job(tmp_path / "second", "session_job.py", *arguments, last) as second:
        codes = second.wait(timeout_secs=60)
    assert set(codes.values()) == {0}, second.logs()
    assert second.events("worker 0", "session")[0]["step"] == reached
    runs = len(second.events("worker 0", "step"))
    # The callback counts on from what it had counted.
    assert second.events("worker 0", "train_end")[0]["batches"] > max(runs, batches)


# The worker starts 5 seconds late here, to keep the test short; nothing depends on
# how long it is but `lost_secs` and `start_secs`.
@pytest.mark.slow
def test_late_and_slow_worker(tmp_path: Path) -> None:
    own = {"worker 1": ["late_secs=5", "step_secs=1.5"]}
    with job(tmp_path, "session_job.py", "last_step=400", own=own) as it:
        codes = it.wait(timeout_secs=80)
    assert set(codes.values()) == {0}, it.logs()
    late = it.events("worker 1", "start")[0]["at"]
    # It did not wait the 30 seconds of TensorFlow's own worker, and took part.
    assert it.events("worker 1", "session")[0]["at"] - late < 8
    assert it.events("worker 1", "step")
    assert it.secs_to_end() <= 10, it.logs()
