"""Hooks and callbacks in a `fit` of several processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fork_server import ForkServer
from idle_clock import idle_secs

from hookbridge import exit_codes
from hookbridge.loops.tasks.local_cluster import LocalCluster

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("workers_job.py")
EPOCHS, BATCHES = 3, 4
STEPS = EPOCHS * BATCHES
LIMIT_IDLE_SECS = 60.0
Notes = list[dict[str, Any]]


class Job:
    """The processes of one job, a chief and its workers; each has run the cases."""

    def __init__(
        self, folder: Path, server: ForkServer, number: int, *cases: str, **env: str
    ) -> None:
        configs = LocalCluster(num_workers=number - 1, num_ps=0).configs()
        processes = [
            server.start(
                [str(SCRIPT), str(folder), *cases],
                {"TF_CONFIG": config.to_json(), **env},
                folder / f"{index}.log",
            )
            for index, config in enumerate(configs)
        ]
        began = idle_secs()
        try:
            while any(p.poll() is None for p in processes):
                assert idle_secs() - began < LIMIT_IDLE_SECS, _logs(folder)
                time.sleep(0.05)
            self.codes = [p.wait() for p in processes]
        finally:
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        self.logs = _logs(folder)
        self.notes: list[Notes] = [
            [json.loads(line) for line in path.read_text().splitlines()]
            if path.exists()
            else []
            for path in (folder / f"{index}.jsonl" for index in range(number))
        ]

    def all(self, event: str) -> Notes:
        """The only note of that name of each process."""
        found = [[n for n in notes if n["event"] == event] for notes in self.notes]
        assert all(len(each) == 1 for each in found), self.logs
        return [each[0] for each in found]


def _logs(folder: Path) -> str:
    return "\n".join(p.read_text()[-3000:] for p in sorted(folder.glob("*.log")))


@pytest.fixture(scope="module")
def two(
    tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer
) -> Iterator[Job]:
    cases = ["values", "every_stop", "stop:hook of 1:2"]
    more = ["roles", "weights", "restart", "other_loops"]
    folder = tmp_path_factory.mktemp("two")
    job = Job(folder, fork_server, 2, *cases, *more)
    assert job.codes == [0, 0], job.logs
    yield job


def check_values(job: Job, devices: int = 1) -> None:
    processes = len(job.notes)
    for task, noted in enumerate(job.all("values")):
        assert noted["steps"] == STEPS
        for step, (loss, mse, global_step) in enumerate(noted["values"]):
            # A process gets each batch in as many parts as there are replicas.
            batch = step // processes % BATCHES
            assert loss == pytest.approx(10 * task + batch + 1)
            assert global_step == step
            if step % BATCHES == 0:  # a mean over the epoch, and over all processes
                each = [(10 * t + batch + 1) ** 2 + 0.25 for t in range(processes)]
                assert mse == pytest.approx(sum(each) / processes)
    logs = [noted["logs"] for noted in job.all("values")]
    assert all(each == logs[0] for each in logs)


def test_values_are_those_of_the_process_and_its_steps(two: Job) -> None:
    check_values(two)


# Where a stop counts: (the first batch, the last one) with which the fit may end.
ENDS = {
    "hook of 1": (5, 6),
    "hook of 0": (5, 6),
    "hook of all": (5, 5),
    "at the end of an epoch": (BATCHES, BATCHES + 1),
    "in the last step": (STEPS, STEPS),
    "in before_run": (5, 6),
    "error in after_run": (5, 6),
    "error in before_run": (5, 6),
    "StopAtStepHook": (5, 5),
    "batch of 1": (5, 6),
    "batch of all": (5, 5),
    "epoch of 1": (2 * BATCHES, 2 * BATCHES + 1),
    "epoch of all": (2 * BATCHES, 2 * BATCHES),
    "no hook but in 0": (5, 6),
    "two at once": (5, 6),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_stop_ends_all_at_the_same_step(two: Job, name: str) -> None:
    first, second = two.all(f"stop {name}")[:2]
    assert first["steps"] == second["steps"] and first["epochs"] == second["epochs"]
    least, most = ENDS[name]
    assert least <= first["batches"] == second["batches"] <= most
    for each in (first, second):
        if name.startswith("error"):
            assert each["ends"] == [1]  # its own session ended before the others'
        elif each["runs"] != [0]:
            assert each["runs"] == [each["steps"]] and each["ends"] == [1]


def test_a_stop_with_several_steps_a_call(two: Job) -> None:
    first, second = two.all("stop hook of 1, 2 steps a call")
    assert first == second
    assert first["steps"] == 2 * first["runs"][0] and first["steps"] in (10, 12)


def test_a_role_that_was_set_counts(two: Job) -> None:
    assert [n["runs"] for n in two.all("roles")] == [[4, 4, 4], [0, 4, 4]]


def test_weights_are_those_of_a_native_fit(two: Job) -> None:
    first, second = two.all("weights")
    assert first["hooked"] == first["native"] == second["hooked"] == second["native"]


def test_the_chief_saves_and_all_go_on(two: Job) -> None:
    for notes in two.notes:
        saved, resumed = (n for n in notes if n["event"] == "restart")
        assert (saved["before"], saved["after"]) == (0, 5)
        assert (resumed["before"], resumed["after"]) == (5, 8)
        # The callback's own count, which the chief saved.
        assert (saved["state"], resumed["state"]) == (5, 8)
        assert "model.ckpt-8.index" in resumed["files"]
        assert resumed["by"] == 1  # an event file of the chief: the worker writes none
    first, second = (
        [n["state"] for n in p if n["event"] == "restart"] for p in two.notes
    )
    assert first == second


def test_other_loops_have_their_events(two: Job) -> None:
    for noted in two.all("loops"):
        assert noted["fit"] == [2 * BATCHES, 1]
        assert noted["evaluate"] == noted["predict"] == [BATCHES, 1]


def test_four_processes(tmp_path: Path, fork_server: ForkServer) -> None:
    job = Job(tmp_path, fork_server, 4, "values", "stop:hook of 1", "stop:epoch of all")
    assert job.codes == [0] * 4, job.logs
    check_values(job)
    for name in ("stop hook of 1", "stop epoch of all"):
        steps = {(n["steps"], n["runs"][0]) for n in job.all(name)}
        assert len(steps) == 1 and steps <= {(5, 5), (6, 6), (8, 8)}


def test_several_devices_in_each_process(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    job = Job(tmp_path, fork_server, 2, "values", "stop:hook of 1", DEVICES="2")
    assert job.codes == [0, 0], job.logs
    check_values(job, devices=2)
    assert len({n["steps"] for n in job.all("stop hook of 1")}) == 1


def test_processes_that_train_on_their_own_stop_on_their_own(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    job = Job(tmp_path, fork_server, 2, "mirrored")
    assert job.codes == [0, 0], job.logs
    first, second = (n["values"] for n in job.all("mirrored"))
    assert len(first) == STEPS and len(second) == 5
    assert first[0] == pytest.approx(1) and second[0] == pytest.approx(11)


def test_a_killed_worker_ends_the_others(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    job = Job(tmp_path, fork_server, 2, "killed:1")
    assert job.codes == [exit_codes.LOST, -signal.SIGKILL], job.logs
    (lost,) = (n for n in job.notes[0] if n["event"] == "lost")
    assert lost["error"] == "UnavailableError"


def test_a_process_without_as_callbacks_is_named(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    job = Job(tmp_path, fork_server, 2, "refused")
    (refused,) = (n for n in job.notes[0] if n["event"] == "refused")
    assert "not in that of worker/0" in refused["error"]
