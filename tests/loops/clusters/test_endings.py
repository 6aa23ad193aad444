"""Every process ends soon after the last step, whichever task stops first and why."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
import tensorflow as tf
from cluster_processes import ALL, Job, job
from fork_server import ForkServer
from old_checkpoint import OLD_STEP, write_checkpoint
from side_by_side import beside_others

from hookbridge.jobs.loops.group_stop.board import JobStop
from hookbridge.jobs.loops.group_stop.evaluator import write_marker

LIMIT_IDLE_SECS = 10.0
WORKERS = ("worker 0", "worker 1")  # the first is the chief


class Way(NamedTuple):
    """How one task stops, and for how many gradients an update waits in its job.

    Attributes:
      task: the task that stops.
      argument: its option.
      reason: a part of the reported reason.
      guest: the hook or callback in the reported reason.
      aggregate: `replicas_to_aggregate`; None if each worker updates alone.
      fails: whether that task ends with an error.
    """

    task: str
    argument: str
    reason: str
    guest: str = ""
    aggregate: int | None = None
    fails: bool = False


STEP_LIMIT = "step_limit"  # the only way in which all tasks stop
ASKED = "asked for a stop"
RAISED = "ValueError: the hook"
WAYS = {
    STEP_LIMIT: Way("worker 0", "last_step=30", ASKED, "StopAtStepHook", 3),
    "end_of_data": Way("worker 1", "batches=15", "its data ended", aggregate=1),
    "stop_training": Way("worker 0", "stop_training_at=15", ASKED, "Stopper", 2),
    "request_stop": Way("worker 1", "request_stop_at=15", ASKED, "Steps"),
    "exception": Way("worker 0", "raise_at=15", RAISED, "Steps", 3, fails=True),
    "nan": Way("worker 1", "nan=0", "NaN loss", "NanTensorHook", 1, fails=True),
}


@beside_others(*WAYS)
def test_all_end(name: str, tmp_path: Path, fork_server: ForkServer) -> None:
    way = WAYS[name]
    arguments = [way.argument] if name == STEP_LIMIT else []
    if way.aggregate is not None:
        arguments.append(f"aggregate={way.aggregate}")
    own = {way.task: [way.argument]}
    # The chief must not end the job before the other worker has joined it.
    own.setdefault("worker 0", []).append("with_peer=worker_1.jsonl")
    with job(tmp_path, "session_job.py", *arguments, own=own, server=fork_server) as it:
        codes = it.wait()
    for task in ALL:  # before the stop
        assert [noted["reason"] for noted in it.events(task, "made")] == [None]
    failing = {way.task} if way.fails else set()
    # All processes have one exit code: without it an orchestrator would take a job in
    # which a worker has failed for a success of its chief.
    assert codes == dict.fromkeys(ALL, int(way.fails)), it.logs()
    assert it.idle_secs_to_end() <= LIMIT_IDLE_SECS, it.logs()
    for task in failing:
        assert way.reason in it.log(task)
    for task in set(WORKERS) - failing:
        (left,) = it.events(task, "left")
        assert way.reason in left["reason"]
        assert not way.guest or f": `{way.guest}` " in left["reason"]
        if name != STEP_LIMIT:
            assert left["reason"].startswith(f"{way.task}: ")
        # A stop by another task is a clean end: hooks get `end` on each worker, and
        # callbacks get `on_train_end` on the chief.
        assert it.events(task, "end")
        assert len(it.events(task, "train_end")) == int(task == "worker 0")
    for task in set(ALL) - failing:
        assert "Traceback" not in it.log(task), it.log(task)
    if name == STEP_LIMIT:
        assert_runs_without_an_update_are_counted(it)


def assert_runs_without_an_update_are_counted(it: Job) -> None:
    # An update takes three gradients of two workers, so at least a third of all runs
    # end no batch.
    (ended,) = it.events("worker 0", "train_end")
    updates = it.events("worker 0", "end")[0]["step"]
    # A stop may come while a batch waits for its update.
    assert ended["begins"] - ended["batches"] in (0, 1)
    assert ended["batches"] <= updates, it.logs()
    waited = {}
    for task in WORKERS:
        told = re.search(r"(\d+) runs did not end a batch", it.log(task))
        waited[task] = int(told[1]) if told else 0
    assert waited["worker 0"] == len(it.events("worker 0", "step")) - ended["batches"]
    assert sum(waited.values()) > updates / 2, it.logs()


@beside_others()
def test_an_evaluator_ends_too_after_the_last_checkpoint(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    # A checkpoint and a mark that an earlier run has ended are there already.
    write_checkpoint(tmp_path / "saved")
    write_marker(str(tmp_path / "saved"), JobStop("an earlier run's"))
    with job(
        *(tmp_path, "session_job.py", f"dir={tmp_path}/saved"),
        tasks=(*ALL, "evaluator 0"),
        own={"worker 0": ["request_stop_at=20"]},
        server=fork_server,
    ) as it:
        codes = it.wait()
    assert set(codes.values()) == {0}, it.logs()
    assert it.idle_secs_to_end() <= LIMIT_IDLE_SECS, it.logs()
    assert it.events("worker 0", "session")[0]["step"] == OLD_STEP
    checkpoint = tf.train.latest_checkpoint(str(tmp_path / "saved"))
    reached = int(checkpoint.rpartition("-")[2])
    assert reached >= OLD_STEP + 20
    # Not equal: until the other worker knows of the stop, it makes steps, the last of
    # which it may not note.
    last = it.events("worker 0", "step")[-1]
    later = [n for n in it.events("worker 1", "step") if n["at"] > last["at"]]
    assert abs(reached - it.events("worker 0", "end")[0]["step"]) <= len(later) + 1
    steps = [noted["step"] for noted in it.events("evaluator 0", "evaluated")]
    assert steps[-1] == reached and sorted(set(steps)) == steps


@pytest.mark.one_tensorflow
@beside_others()
def test_a_job_in_which_nobody_trains_ends_too(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    own = {"ps 0": ["late_secs=1"]}  # the workers have come and would be gone
    with job(
        *(tmp_path, "session_job.py", "nothing=1"), own=own, server=fork_server
    ) as it:
        codes = it.wait()
    assert set(codes.values()) == {0}, it.logs()
    assert "exit code" not in it.logs()


def test_what_a_closed_session_ends_in_a_thread_is_no_failure() -> None:
    import hookbridge as hb

    hook = hb.loops.GroupStopHook(hb.loops.ClusterConfig())
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        hook.begin()
        coord = tf.train.Coordinator()
        hook.after_create_session(session, coord)
        late = tf.errors.AbortedError(None, None, "Session is not found.")
        coord.request_stop()
        coord.join()
        assert coord.joined
        coord.request_stop(tf.errors.CancelledError(None, None, "closed"))
        coord.request_stop(late)
        with pytest.raises(ValueError, match="mine"):  # a user's error is raised
            try:
                raise ValueError("mine")
            except ValueError as e:
                coord.request_stop(e)
