"""Hooks and callbacks in a `fit` of several processes."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_processes import Job, job
from fork_server import ForkServer

from hookbridge.ground import compat
from hookbridge.ground.processes import exit_codes

pytestmark = pytest.mark.slow

TASKS = ("chief 0", "worker 0", "worker 1")
EPOCHS, BATCHES = 3, 4
STEPS = EPOCHS * BATCHES


def only_notes(it: Job, event: str) -> list[dict[str, Any]]:
    """The only note of that name of each process."""
    found = [it.events(task, event) for task in it.tasks]
    assert all(len(each) == 1 for each in found), it.logs()
    return [each[0] for each in found]


@contextlib.contextmanager
def ended_job(
    folder: Path,
    server: ForkServer,
    *cases: str,
    number: int = 2,
    codes: tuple[int, ...] | None = (0,),
    **environment: str,
) -> Iterator[Job]:
    """A job whose processes have run the cases and ended with these exit codes."""
    with job(
        folder,
        "workers_job.py",
        *cases,
        server=server,
        tasks=TASKS[:number],
        environment=environment,
    ) as it:
        found = tuple(it.wait().values())
        if codes is not None:
            assert found == (codes * number)[:number], it.logs()
        yield it


@pytest.fixture(scope="module")
def two(
    tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer
) -> Iterator[Job]:
    cases = ["values", "every_stop", "weights", "restart"]
    if compat.tf_version() >= (2, 16):  # the test of these is `one_tensorflow`
        cases += ["stop:hook of 1:2", "roles", "other_loops"]
    with ended_job(tmp_path_factory.mktemp("two"), fork_server, *cases) as it:
        yield it


def check_values(it: Job) -> None:
    processes = len(it.tasks)
    for task, values in enumerate(only_notes(it, "values")):
        assert values["steps"] == STEPS
        for step, (loss, mse, global_step) in enumerate(values["values"]):
            # A process gets each batch in as many parts as there are replicas.
            batch = step // processes % BATCHES
            assert loss == pytest.approx(10 * task + batch + 1)
            assert global_step == step
            if step % BATCHES == 0:  # a mean over the epoch, and over all processes
                each = [(10 * t + batch + 1) ** 2 + 0.25 for t in range(processes)]
                assert mse == pytest.approx(sum(each) / processes)
    logs = [values["logs"] for values in only_notes(it, "values")]
    assert all(each == logs[0] for each in logs)


def test_values_are_those_of_the_process_and_its_steps(two: Job) -> None:
    check_values(two)


# Where a stop counts: (the first batch, the last one) with which the fit may end.
ENDS = {
    "hook of 1": (5, 6),
    "at the end of an epoch": (BATCHES, BATCHES + 1),
    "in the last step": (STEPS, STEPS),
    "in before_run": (5, 6),
    "error in after_run": (5, 6),
    "error in before_run": (5, 6),
    "StopAtStepHook": (5, 5),
    "batch of 1": (5, 6),
    "epoch of 1": (2 * BATCHES, 2 * BATCHES + 1),
    "epoch of all": (2 * BATCHES, 2 * BATCHES),
    "no hook but in 0": (5, 6),
    "two at once": (5, 6),
}


def test_a_stop_ends_all_at_the_same_step(subtests: pytest.Subtests, two: Job) -> None:
    for name, (least, most) in ENDS.items():
        with subtests.test(str(name)):
            first, second = only_notes(two, f"stop {name}")
            assert first["steps"] == second["steps"], name
            assert first["epochs"] == second["epochs"], name
            assert least <= first["batches"] == second["batches"] <= most, name
            for each in (first, second):
                if name.startswith("error"):
                    assert each["ends"] == [
                        1
                    ]  # its own session ended before the others'
                elif each["runs"] != [0]:
                    assert each["runs"] == [each["steps"]] and each["ends"] == [1], name


@pytest.mark.one_tensorflow
def test_several_steps_a_call_roles_and_other_loops(
    subtests: pytest.Subtests, two: Job
) -> None:
    first, second = only_notes(two, "stop hook of 1, 2 steps a call")
    for fact in ("steps", "epochs", "batches", "runs"):
        with subtests.test(str(fact)):
            assert first[fact] == second[fact]
    assert first["steps"] == 2 * first["runs"][0] and first["steps"] in (10, 12)
    assert [n["runs"] for n in only_notes(two, "roles")] == [[4, 4, 4], [0, 4, 4]]
    for each in only_notes(two, "loops"):
        assert each["fit"] == [2 * BATCHES, 1]
        assert each["evaluate"] == each["predict"] == [BATCHES, 1]
        assert each["stopped evaluate"] == each["stopped predict"] == [1, 1]


def test_weights_are_those_of_a_native_fit(two: Job) -> None:
    first, second = only_notes(two, "weights")
    assert first["hooked"] == first["native"] == second["hooked"] == second["native"]


def test_the_chief_saves_and_all_go_on(two: Job) -> None:
    for task in two.tasks:
        saved, resumed = two.events(task, "restart")
        assert (saved["before"], saved["after"]) == (0, 5)
        assert (resumed["before"], resumed["after"]) == (5, 8)
        # The callback's own count, which the chief saved.
        assert (saved["state"], resumed["state"]) == (5, 8)
        assert "model.ckpt-8.index" in resumed["files"]
        assert resumed["by"] == 1  # an event file of the chief: the worker writes none


@pytest.mark.parametrize(
    ("loop", "failed"),
    [
        ("evaluate", [1, 1]),
        pytest.param(
            *("predict", [0, 1]),
            marks=[pytest.mark.one_tensorflow, pytest.mark.exhaustive],
        ),
    ],
)
def test_a_stop_of_one_process_outside_fit_is_an_error(
    loop: str, failed: list[int], tmp_path: Path, fork_server: ForkServer
) -> None:
    case = f"lone_stop:{loop}"
    with ended_job(tmp_path, fork_server, case, codes=None) as it:
        assert [len(it.events(t, "failed")) for t in it.tasks] == failed, it.logs()


@pytest.mark.exhaustive
def test_three_processes_of_two_devices(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    cases = ["values", "stop:hook of 1"]
    with ended_job(tmp_path, fork_server, *cases, number=3, DEVICES="2") as it:
        check_values(it)
        stops = only_notes(it, "stop hook of 1")
        steps = {(each["steps"], each["runs"][0]) for each in stops}
        assert len(steps) == 1 and steps <= {(5, 5), (6, 6)}


@pytest.mark.one_tensorflow
def test_processes_that_train_on_their_own_stop_on_their_own(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    with ended_job(tmp_path, fork_server, "mirrored") as it:
        first, second = (n["values"] for n in only_notes(it, "mirrored"))
    assert len(first) == STEPS and len(second) == 5
    assert first[0] == pytest.approx(1) and second[0] == pytest.approx(11)


@pytest.mark.one_tensorflow
def test_a_killed_worker_ends_the_others(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    codes = (exit_codes.LOST, -signal.SIGKILL)
    with ended_job(tmp_path, fork_server, "killed:1", codes=codes) as it:
        assert it.of_chief("lost")["error"] == "UnavailableError"


def test_a_process_without_as_callbacks_is_named(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    with ended_job(tmp_path, fork_server, "refused", codes=None) as it:
        assert "the `fit` of worker/0 does not" in it.of_chief("refused")["error"]
