"""One process's part in a stop; here all tasks of a job are in this process."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import tensorflow as tf

from hookbridge import errors
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.jobs.loops.group_stop import member as member_lib
from hookbridge.jobs.loops.group_stop.board import (
    JobStop,
    StopBoard,
    left_note,
    stop_job,
)
from hookbridge.jobs.loops.group_stop.hook import GroupStopHook
from hookbridge.jobs.loops.group_stop.member import GroupStop, GroupStopped
from hookbridge.jobs.loops.tasks.ports import held_ports
from hookbridge.jobs.loops.tasks.server import own_target, start_server

TASKS = ("chief", "worker", "ps")
PREEMPTED = 143
STOP = JobStop("an evaluator: it received SIGTERM", PREEMPTED)


class Job:
    """A chief, a worker and a parameter server, whose servers run in this process."""

    def __init__(self, ports: Sequence[int]) -> None:
        hosts = [f"127.0.0.1:{port}" for port in ports]
        self._cluster = {name: (host,) for name, host in zip(TASKS, hosts, strict=True)}
        for task in TASKS:
            start_server(self.config(task), None)

    def config(self, task: str) -> ClusterConfig:
        return ClusterConfig(self._cluster, task, 0)

    def note(self, name: str) -> str | None:
        """Reads a note of the parameter server."""
        with contextlib.closing(self.board()) as board:
            return board.read(name)

    def board(self) -> StopBoard:
        config = self.config("ps")
        return StopBoard(own_target(config), config)


@pytest.fixture(scope="module")
def job() -> Iterator[Job]:
    with held_ports(len(TASKS)) as ports:
        yield Job(ports)


@pytest.fixture
def members(job: Job) -> Iterator[Any]:
    """`members(task)` is a process's part in the job; all leave it with the test."""
    made = []

    def member(task: str, **options: float) -> GroupStop:
        made.append(GroupStop(job.config(task), **options))
        return made[-1]

    yield member
    for group in made:
        if not group.stopped:
            group.request("the test is over")
        group.leave()


def join(group: GroupStop) -> GroupStop:
    group.connect(own_target(group.config))
    return group


@pytest.fixture(autouse=True)
def _no_waits_for_other_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LATE_SECS", "LEAVING_SECS"):
        monkeypatch.setattr(member_lib, name, 0.0)


def test_the_first_stop_ends_all_with_its_reason_and_code(members: Any) -> None:
    chief, worker = join(members("chief")), join(members("worker"))
    assert not chief.stopped
    chief.check()
    worker.request("its hook asked", PREEMPTED)
    worker.request("once more", 1)
    chief.request("its data ended")
    for group in (chief, worker):
        assert (group.reason, group.code) == ("worker 0: its hook asked", PREEMPTED)
        with pytest.raises(GroupStopped, match="worker 0: its hook asked"):
            group.check()


def test_a_stop_wakes_a_process_that_waits_for_it(members: Any, job: Job) -> None:
    chief = join(members("chief"))
    woken = threading.Event()
    chief.watch.release_by(woken.set)
    assert stop_job(own_target(job.config("worker")), job.config("worker"), STOP)
    woken.wait()
    assert (chief.reason, chief.code) == STOP


def test_the_end_of_a_session_ends_the_job(job: Job) -> None:
    """As where a program leaves its loop without a stop."""
    hook = GroupStopHook(job.config("chief"))
    with tf.Graph().as_default(), tf.compat.v1.train.MonitoredSession(hooks=[hook]):
        pass
    with contextlib.closing(job.board()) as board:
        ending = board.ending(board.generation())
    assert ending == JobStop("chief 0: its session ended")


def test_a_worker_joins_the_job_that_the_chief_begins(members: Any, job: Job) -> None:
    chief, worker = members("chief"), members("worker")
    number = int(job.note("generation") or 0)
    join(chief)
    join(worker)
    assert job.note("generation") == str(number + 1)
    chief.ready()
    assert job.note(f"ready_{number + 1}") == ""
    worker.wait_until_ready()
    # A chief that starts again meanwhile goes on with the same job.
    join(members("chief"))
    assert job.note("generation") == str(number + 1)


@pytest.mark.parametrize("code", [0, PREEMPTED])
def test_a_stopped_job_is_over_and_the_chief_begins_the_next(
    members: Any, job: Job, code: int
) -> None:
    chief = join(members("chief"))
    number = int(job.note("generation") or 0)
    chief.request("its data ended", code)
    late = members("worker")
    with contextlib.suppress(GroupStopped):
        join(late)
    reason = "the job was over: chief 0: its data ended"
    assert (late.reason, late.code) == (reason, code)
    # The same object joins again, unless its process is about to end.
    if code:
        with pytest.raises(GroupStopped):
            join(chief)
        chief = members("chief")
    join(chief)
    assert (chief.stopped, chief.reason, chief.code) == (False, None, 0)
    assert job.note("generation") == str(number + 1)


def test_a_worker_that_comes_between_two_jobs_waits_for_the_next(
    members: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member_lib, "LATE_SECS", 60.0)
    join(members("chief")).request("its data ended")
    worker, chief = members("worker"), members("chief")
    begins = threading.Thread(target=join, args=[chief])
    ending = StopBoard.ending

    def look(board: StopBoard, generation: int) -> JobStop | None:
        found = ending(board, generation)
        is_worker = threading.current_thread() is threading.main_thread()
        if is_worker and begins.ident is None:
            begins.start()
        return found

    monkeypatch.setattr(StopBoard, "ending", look)
    join(worker)
    begins.join()
    assert (worker.stopped, worker.reason) == (False, None)


def test_a_process_that_has_left_is_noted_and_stops_nobody(
    members: Any, job: Job
) -> None:
    chief, worker = join(members("chief")), join(members("worker"))
    worker.leave()
    worker.request("too late")
    assert not worker.stopped
    assert job.note(left_note("worker", 0)) == "0"
    chief.request("it received SIGTERM", PREEMPTED)
    chief.leave()
    assert job.note(left_note("chief", 0)) == str(PREEMPTED)


def test_a_process_that_had_no_session_leaves_through_its_own_server(
    members: Any, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member_lib, "LEAVING_SECS", 10.0)
    worker = members("worker")
    worker.code = 7
    worker.leave(own_target(worker.config))
    assert job.note(left_note("worker", 0)) == "7"


def test_a_worker_does_not_wait_for_ever_for_variables(members: Any) -> None:
    join(members("chief"))
    worker = join(members("worker", start_secs=0.1))
    with pytest.raises(errors.TaskLostError, match=r"within 0\.1 s; `worker 0`"):
        worker.wait_until_ready()
    assert not worker.stopped


@pytest.fixture
def unreachable() -> Iterator[ClusterConfig]:
    """A job whose parameter server never starts."""
    with held_ports(2) as ports:
        chief, server = (f"localhost:{port}" for port in ports)
        yield ClusterConfig({"chief": (chief,), "ps": (server,)}, "chief", 0)


def test_a_server_that_never_listens_is_named(unreachable: ClusterConfig) -> None:
    group = GroupStop(unreachable, start_secs=0.1)
    assert not group.servers_listen()
    with pytest.raises(errors.TaskLostError) as caught:
        group.connect("")
    (address,) = unreachable.cluster["ps"]
    assert f"`ps` 0 ({address}) cannot be reached for 0.1 s" in str(caught.value)
    assert "`chief 0` expected" in str(caught.value)


def test_a_job_that_has_ended_without_this_process_is_over(
    unreachable: ClusterConfig,
) -> None:
    group = GroupStop(unreachable, start_secs=60)
    group.ask_ending = lambda: JobStop("its data ended", 3)
    with pytest.raises(GroupStopped, match="was over, and its servers had left"):
        group.connect("")
    assert group.code == 3
    group.leave()


def test_a_stop_before_the_session_keeps_its_process_out(
    unreachable: ClusterConfig,
) -> None:
    group = GroupStop(unreachable, start_secs=0.1)
    group.stop_here("this task received SIGTERM", PREEMPTED)
    with pytest.raises(GroupStopped, match="SIGTERM"):
        group.connect("")
    group.leave()


def test_an_error_about_a_lost_task_is_raised_where_the_process_waits(
    unreachable: ClusterConfig,
) -> None:
    group = GroupStop(unreachable, start_secs=60)
    error = group.lost([("ps", 0)], 0.0)
    assert " for " not in str(error).partition(";")[0]
    group.fail(error)
    assert (group.stopped, group.code, group.reason) == (True, 138, str(error))
    for waits in (group.check, group.wait_for_servers):
        with pytest.raises(errors.TaskLostError) as caught:
            waits()
        assert caught.value is error
    group.leave()


def test_a_process_without_servers_stops_itself_only() -> None:
    group = GroupStop(ClusterConfig({"chief": ("localhost:1",)}, "chief", 0))
    join(group)
    assert group.servers_listen()
    group.wait_until_ready()
    group.request("its hook asked", 5)
    assert (group.reason, group.code) == ("chief 0: its hook asked", 5)
    join(group)
    assert not group.stopped
    group.leave()


def test_no_job_can_be_stopped_where_none_began() -> None:
    with held_ports(1) as (port,):
        config = ClusterConfig({"ps": (f"127.0.0.1:{port}",)}, "ps", 0)
        target = start_server(config, None).target
    assert not stop_job(target, config, STOP)
    with contextlib.closing(StopBoard(target, config)) as board:
        assert board.are_written(["generation", "stop_0"]) == [False, False]
        board.begin(1)
        assert not board.is_ready(1)
        board.ready(1)
        assert board.is_ready(1)
        assert not board.is_ready(2)
        assert board.are_written(["generation", "stop_0"]) == [True, False]
    assert stop_job(target, config, STOP)
