"""Estimator's `train_and_evaluate`: one stop ends chief, worker, server, evaluator."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import tensorflow as tf
from cluster_processes import Job, job
from fork_server import ForkServer
from old_checkpoint import OLD_STEP, write_checkpoint
from side_by_side import beside_others

from hookbridge import errors
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.jobs.loops.group_stop import evaluator, member
from hookbridge.jobs.loops.group_stop.board import JobStop
from hookbridge.jobs.loops.group_stop.evaluator import (
    JobEnd,
    stop_from_outside,
    write_marker,
)
from hookbridge.jobs.loops.group_stop.member import GroupStop, GroupStopped
from hookbridge.jobs.loops.tasks.ports import held_ports

TASKS = ("ps 0", "chief 0", "worker 0", "evaluator 0")
# Process -> event -> roles that get it; `worker` and `split` differ in `train_end`.
TOLD = {
    "chief 0": {
        "train": {"split", "chief", "worker", "all"},
        "train_end": {"split", "chief", "worker", "all"},
    },
    "worker 0": {"train": {"split", "worker", "all"}, "train_end": {"worker", "all"}},
    "evaluator 0": {"test_end": {"split", "chief", "evaluator", "all"}},
    "ps 0": {},
}


def events_of_roles(it: Job, task: str) -> dict[str, set[str]]:
    """Event -> the roles whose callbacks got it in a process."""
    found: dict[str, set[str]] = {}
    for noted in it.events(task, "role"):
        found.setdefault(noted["told"], set()).add(noted["role"])
    return found


@beside_others()
def test_a_stop_in_one_process_stops_all_and_the_next_run_goes_on(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    model_dir = tmp_path / "model"
    # From plain TensorFlow: a checkpoint from before the job used hookbridge.
    names = write_checkpoint(model_dir)
    reached = OLD_STEP
    # The second run finds the stop marker of the first one in the directory.
    for name, stops, other, how in (
        ("first", "worker 0", "chief 0", "stop_training_at=30"),
        ("second", "chief 0", "worker 0", "request_stop_at=30"),
    ):
        arguments = ("aggregate=2", f"dir={model_dir}")
        # The job must not end before the other task has made a step.
        may_stop = tmp_path / f"{name}_may_stop"
        with job(
            *(tmp_path / name, "estimator_job.py", *arguments),
            tasks=TASKS,
            own={stops: [how, f"stop_if={may_stop}"]},
            server=fork_server,
        ) as it:
            it.wait_for(other, "role")
            may_stop.touch()
            codes = it.wait()
        assert set(codes.values()) == {0}, it.logs()
        assert it.idle_secs_to_end() <= 10, it.logs()
        assert it.events("chief 0", "session")[0]["step"] == reached
        assert it.events("worker 0", "end") and it.events("chief 0", "train_end")
        checkpoint = tf.train.latest_checkpoint(str(model_dir))
        before, reached = reached, int(checkpoint.rpartition("-")[2])
        # While one task is late, both gradients of an update come from the
        # other task.
        assert reached >= before + 10
        assert it.events("evaluator 0", "left")[0]["evaluated"] == reached
        # A hook of the evaluator ends each evaluation, and nothing else.
        asking, asked = (it.events("evaluator 0", e) for e in ("asking", "asked"))
        assert len(asking) == len(asked) > 0
        marker = json.loads((model_dir / "hookbridge_stop.json").read_text())
        assert marker["reason"].startswith(stops)
        # The checkpoint has the variables of the model, and no more.
        (graph,) = it.events("chief 0", "variables")
        saved = [name for name, _ in tf.train.list_variables(checkpoint)]
        assert saved == graph["names"] == names
        assert {task: events_of_roles(it, task) for task in TASKS} == TOLD
        for task in TASKS:
            assert "Traceback" not in it.log(task), it.log(task)


@pytest.mark.one_tensorflow
@beside_others()
def test_a_stop_of_the_evaluator_before_the_job_begins(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    model_dir = tmp_path / "model"
    write_checkpoint(model_dir)
    with job(
        tmp_path,
        "estimator_job.py",
        f"dir={model_dir}",
        tasks=TASKS,
        own={"evaluator 0": ["stop_in_test=1"]},
        start=["evaluator 0"],
        server=fork_server,
    ) as it:
        it.wait_for("evaluator 0", "stop_in_test")
        for task in TASKS[:-1]:
            it.start(task)
        codes = it.wait()
    assert set(codes.values()) == {0}, it.logs()
    marker = json.loads((model_dir / "hookbridge_stop.json").read_text())
    assert "evaluator: `TestStopper` asked for a stop" in marker["reason"]


@pytest.mark.one_tensorflow
@beside_others()
def test_a_worker_that_sleeps_until_the_job_is_over(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    arguments = (f"dir={tmp_path / 'model'}", "last_step=1", "delay_secs=8")
    tasks = ("ps 0", "chief 0", "worker 0", "worker 1")
    with job(
        *(tmp_path, "estimator_job.py", *arguments), tasks=tasks, server=fork_server
    ) as it:
        codes = it.wait()
    assert set(codes.values()) == {0}, it.logs()
    # The server stayed for the worker: otherwise the worker could not end well.
    (_, served), (_, worked) = it.ended["ps 0"], it.ended["worker 1"]
    assert served > worked - 5
    assert it.events("worker 1", "left"), it.log("worker 1")
    # A job that is done already: no task has a session, and all end well nevertheless.
    with job(
        *(tmp_path / "again", "estimator_job.py", *arguments[:2]),
        tasks=tasks,
        server=fork_server,
    ) as it:
        codes = it.wait()
    assert set(codes.values()) == {0}, it.logs()
    assert not it.events("chief 0", "session")
    assert "exit code" not in it.logs()


@pytest.fixture
def ports() -> Iterator[list[int]]:
    """Ports on which nobody listens, and which nobody else gets."""
    with held_ports(3) as held:
        yield held


@pytest.mark.slow
@pytest.mark.one_tensorflow
def test_a_worker_whose_servers_have_left(
    tmp_path: Path, ports: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member, "LATE_SECS", 1.0)
    addresses = {
        job: (f"127.0.0.1:{port}",)
        for job, port in zip(("ps", "chief", "worker"), ports, strict=True)
    }
    config = ClusterConfig(addresses, "worker", 0)
    write_marker(str(tmp_path), JobStop("an earlier run's"))
    target = "grpc://" + addresses["worker"][0]
    group = GroupStop(config, start_secs=member.LATE_SECS + 1)
    group.ask_ending = JobEnd(str(tmp_path), config).ask_ending
    with pytest.raises(errors.ClusterError, match=f"`ps` 0 .*{ports[0]}"):
        group.connect(target)
    write_marker(str(tmp_path), JobStop("this run's", 1))
    with pytest.raises(GroupStopped):
        group.connect(target)
    assert "the job was over" in (group.reason or "")
    assert group.code == 1
    # One that is started again after the end, when no chief comes, ends too.
    again = GroupStop(config, start_secs=600)
    monkeypatch.setattr(evaluator, "LATE_SECS", 2.0)
    again.ask_ending = JobEnd(str(tmp_path), config).ask_ending
    with pytest.raises(GroupStopped):
        again.connect(target)
    assert again.code == 1


def test_a_stop_from_outside_ends_with_a_chief_that_is_gone(
    tmp_path: Path, ports: list[int]
) -> None:
    addresses = [(f"127.0.0.1:{port}",) for port in ports]
    config = ClusterConfig(
        dict(zip(("chief", "ps"), addresses, strict=False)), "evaluator", 0
    )
    with socket.create_server(("127.0.0.1", ports[0])):
        end = JobEnd(str(tmp_path), config, lost_secs=1)
        assert end.ask_ending() is None  # the chief is up
    with pytest.raises(errors.ClusterError, match="The chief is gone for 1 s"):
        stop_from_outside(config, "evaluator: for this test", end)
