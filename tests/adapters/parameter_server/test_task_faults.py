"""Tasks that die, stop or come late, with real processes."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from cluster_processes import WITH_CHIEF, Job, job
from fork_server import ForkServer
from forked_python import Forked

import hookbridge as hb
from hookbridge.adapters.parameter_server.event_queue import EventQueue, default_max_lag
from hookbridge.ground.processes import exit_codes
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.jobs.loops.tasks.local_cluster import LocalCluster
from hookbridge.jobs.loops.tasks.ports import address, held_ports, is_listening

RATE = 0.0078125


def started(
    folder: Path, server: ForkServer, tasks: tuple[str, ...] | None, **environment: str
) -> contextlib.AbstractContextManager[Job]:
    options: dict[str, Any] = {"tasks": WITH_CHIEF, "environment": environment}
    return job(folder, "faults_job.py", server=server, start=tasks, **options)


@contextlib.contextmanager
def job_in_its_steps(
    folder: Path, server: ForkServer, **environment: str
) -> Iterator[Job]:
    """A job in the middle of its steps."""
    with started(folder, server, None, **environment) as it:
        it.wait_for("chief 0", "batch 20")
        yield it


def saved(it: Job, folder: Path) -> tuple[int, float]:
    """The step of the end, which its checkpoint has, and how many updates are ahead."""
    step = int(it.of_chief("ends")["step"])
    assert it.of_chief("on_train_end")["batches"] == step
    path = tf.train.latest_checkpoint(str(folder / "saved"))
    assert path.endswith(f"-{step}")
    reader = tf.train.load_checkpoint(path)
    assert reader.get_tensor("global_step") == step
    return step, reader.get_tensor("out/bias")[0] / -RATE - step


@pytest.mark.slow
def test_a_killed_worker_is_done_without_and_a_killed_chief_ends_all(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    with job_in_its_steps(tmp_path, fork_server) as it:
        # While one worker stands still, the others make at most `max_lag` more steps.
        it.send("worker 0", signal.SIGSTOP)
        time.sleep(0.5)
        it.send("worker 0", signal.SIGCONT)
        it.wait_for("chief 0", "batch 80")
        it.send("worker 1", signal.SIGKILL)
        it.wait_for("chief 0", "batch 240")
        assert not it.events("chief 0", "failed")
        killed = it.send("chief 0", signal.SIGKILL)
        codes = it.wait()
        assert it.idle_secs_to_end(killed) < 15
    assert codes == {
        "chief 0": -signal.SIGKILL,
        "worker 0": exit_codes.LOST,
        "worker 1": -signal.SIGKILL,
        "ps 0": exit_codes.LOST,
    }


@pytest.mark.slow
def test_a_killed_parameter_server_is_a_clear_error(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    with job_in_its_steps(tmp_path, fork_server) as it:
        killed = it.send("ps 0", signal.SIGKILL)
        codes = it.wait()
        failed = it.of_chief("failed")
        assert failed["type"] == "UnavailableError"
        assert "/job:ps/replica:0/task:0" in failed["message"]
        assert failed["idle"] - killed < 60
        assert it.idle_secs_to_end(killed) < 75
        assert not it.events("chief 0", "ends") and not it.events(
            "chief 0", "on_train_end"
        )
    # The error alone says it, and no record of each step.
    printed = (tmp_path / "chief_0.log").read_text()
    assert "Traceback (most recent call last)" in printed
    assert "Remote function on worker" not in printed
    assert codes.pop("ps 0") == -signal.SIGKILL
    assert set(codes.values()) == {exit_codes.LOST}


@pytest.mark.slow
@pytest.mark.one_tensorflow
def test_sigterm_saves_and_a_restart_goes_on_from_there(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    """In the first run, a worker stands still."""
    with job_in_its_steps(tmp_path, fork_server, PATIENCE_SECS="1") as it:
        it.send("worker 0", signal.SIGSTOP)
        time.sleep(0.5)  # the chief waits for its step
        it.send("chief 0", signal.SIGTERM)
        assert it.processes["chief 0"].wait() == exit_codes.PREEMPTED, it.logs()
        it.send("worker 0", signal.SIGCONT)
        codes = it.wait()
        # The worker that stood still was not told.
        assert codes.pop("worker 0") == exit_codes.LOST
        assert set(codes.values()) == {exit_codes.PREEMPTED}, it.logs()
        # The chief did not wait for the two workers: each may have made one more
        # update, which the global step does not count.
        step, ahead = saved(it, tmp_path)
        assert ahead in range(3)
    it.report("chief 0").rename(tmp_path / "before.jsonl")
    first = ("chief 0", "ps 0", "worker 0")
    with started(tmp_path, fork_server, first) as it:
        it.wait_for("chief 0", "waits")
        it.start("worker 1")
        it.wait_for("chief 0", "batch 20")
        told = it.send("chief 0", signal.SIGTERM)
        assert set(it.wait().values()) == {exit_codes.PREEMPTED}, it.logs()
        assert it.idle_secs_to_end(told) < 20
        assert it.of_chief("begins")["step"] == step
        # The callback has continued its count, and no step was given up.
        end, still_ahead = saved(it, tmp_path)
        assert end > step and still_ahead == ahead


@pytest.mark.slow
@pytest.mark.one_tensorflow
def test_a_chief_without_workers_ends_with_an_error(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    with job_in_its_steps(tmp_path, fork_server, LOST_SECS="2", EXIT_SECS="1") as it:
        for worker in ("worker 0", "worker 1"):
            it.send(worker, signal.SIGKILL)
        codes = it.wait()
        failed = it.of_chief("failed")
    assert failed["type"] == "TaskLostError"
    assert "All workers are gone for 2 s: `worker` 0 (" in failed["message"]
    assert not it.events("chief 0", "ends")
    assert codes["chief 0"] == codes["ps 0"] == exit_codes.LOST


@pytest.mark.slow
def test_threads_that_still_make_iterators_are_waited_for(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    script = ("faults_job.py", "leaves")
    with job(tmp_path, *script, server=fork_server, tasks=WITH_CHIEF) as it:
        codes = it.wait()
    assert set(codes.values()) == {0}, it.logs()
    assert it.of_chief("leaves")
    # An interpreter that ends while such a thread runs may abort: docs/decisions/0006.
    assert it.of_chief("threads")["names"] == ["MainThread"]


@pytest.fixture
def held() -> Iterator[list[ClusterConfig]]:
    """A chief, a worker and a server on ports that nobody else gets."""
    with held_ports(3) as ports:
        yield LocalCluster(num_workers=1, num_ps=1).configs(ports)


STRATEGY = """
import hookbridge as hb
from hookbridge.jobs.loops.tasks import server
server.ANSWER_SECS = 1.0
hb.loops.parameter_server_strategy(start_secs={})
"""


@contextlib.contextmanager
def strategy_process(
    config: ClusterConfig, server: ForkServer, log: Path, start_secs: float
) -> Iterator[Forked]:
    """A task that only makes its strategy; it does not outlive the block."""
    words = ["-c", STRATEGY.format(start_secs)]
    process = server.start(words, {"TF_CONFIG": config.to_json()}, log)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.slow
@pytest.mark.one_tensorflow
def test_a_chief_names_a_stranger_on_a_port_and_servers_wait_as_long_as_it_waits(
    held: list[ClusterConfig], tmp_path: Path, fork_server: ForkServer
) -> None:
    chief, worker, _ = held
    with (
        socket.create_server(address(chief, "ps", 0)),
        contextlib.ExitStack() as stack,
    ):
        started = []
        for job, config, secs in (("chief", chief, 8), ("worker", worker, 1)):
            process = strategy_process(config, fork_server, tmp_path / job, secs)
            started.append(stack.enter_context(process))
            while not is_listening(config, job, 0):
                assert started[-1].poll() is None
                time.sleep(0.1)
        codes = [process.wait() for process in started]
    assert codes == [exit_codes.LOST] * 2
    expected = f"did not come within 8 s: `ps` 0 ({chief.cluster['ps'][0]});"
    assert expected in (tmp_path / "chief").read_text()
    # The worker, which would wait a second for a chief, saw it wait and end.
    assert "disappeared" in (tmp_path / "worker").read_text()


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("localhost", 0)) as other:
        port = other.getsockname()[1]
        (config, *_) = LocalCluster(num_workers=1).configs([port, 1, 2])
        with pytest.raises(hb.errors.ClusterError, match=str(port)):
            hb.loops.parameter_server_strategy(config)


@pytest.mark.parametrize("missing", ["chief", "worker", "ps"])
def test_a_cluster_without_a_role_is_refused(missing: str) -> None:
    (config, *_) = LocalCluster(num_workers=1).configs()
    rest = {job: hosts for job, hosts in config.cluster.items() if job != missing}
    task = next(iter(rest))
    with pytest.raises(hb.errors.InvalidArgumentError, match=repr(missing)):
        hb.loops.parameter_server_strategy(ClusterConfig(rest, task, 0))
    other = ClusterConfig(config.cluster, "evaluator", 0)
    with pytest.raises(hb.errors.InvalidArgumentError, match="evaluator"):
        hb.loops.parameter_server_strategy(other)


@pytest.mark.parametrize("task", ["chief", "worker", "ps"])
def test_a_hook_that_needs_the_step_s_process_is_refused_before_any_server(
    subtests: pytest.Subtests, held: list[ClusterConfig], task: str, tmp_path: Path
) -> None:
    config = next(c for c in held if c.task_type == task)
    with tf.Graph().as_default():  # the hook makes its writer at once
        hook = tf.compat.v1.train.ProfilerHook(save_steps=1, output_dir=str(tmp_path))
    saver = hb.checkpoints.BackgroundSaverHook(str(tmp_path), save_steps=1)
    for guests in ([hook], hb.as_callbacks([hook]), [saver]):
        with subtests.test(str(guests)):
            name = "BackgroundSaverHook" if guests[0] is saver else "ProfilerHook"
            with pytest.raises(hb.errors.RefusedError, match=f"`{name}` cannot run"):
                hb.loops.parameter_server_strategy(config, guests=guests)
    # The refusal came before any server listened.
    assert not is_listening(config, task, 0)


def test_a_chief_that_nobody_joins_names_who_is_missing(
    held: list[ClusterConfig],
) -> None:
    with pytest.raises(hb.errors.ClusterError, match=r"`worker` 0 .*`ps` 0"):
        hb.loops.parameter_server_strategy(held[0], start_secs=0.1)


def test_a_server_whose_chief_never_comes_ends(
    held: list[ClusterConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    _, worker, _ = held
    with pytest.raises(SystemExit) as ended:
        hb.loops.parameter_server_strategy(worker, start_secs=0.1)
    assert ended.value.code == exit_codes.LOST
    assert worker.cluster["chief"][0] in capsys.readouterr().err


def test_the_smallest_lag_of_all_guests_counts() -> None:
    # The default leaves no worker without a step.
    lags = {workers: default_max_lag(workers) for workers in (1, 15, 16, 100)}
    assert lags == {1: 30, 15: 30, 16: 32, 100: 200}
    wishes: dict[tuple[int | None, ...], int] = {
        (): 30, (100,): 100, (100, None): 30, (None, 100): 30, (None, 4): 4
    }  # fmt: skip
    for each, lag in wishes.items():
        events = EventQueue(lambda deliver: deliver(), lambda value: None, workers=2)
        for wish in each:
            events.limit_lag(wish)
        assert events.max_lag == lag
