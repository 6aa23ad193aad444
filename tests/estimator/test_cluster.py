"""`train_and_evaluate` over real processes: chief, worker, server, evaluator."""

from __future__ import annotations

import json
from typing import Any

import estimator_scenarios as scenarios
import pytest
import tensorflow as tf
from estimator_processes import codes_when_done, job, log
from fork_server import ForkServer

MAX_STEPS = 500
TASKS = ["ps", "chief", "worker", "evaluator"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> Any:
    """The folder of a finished job, and the exit codes of its processes."""
    folder = tmp_path_factory.mktemp("cluster")
    arguments = [str(folder / "model"), str(MAX_STEPS)]
    with job("cluster_job.py", folder, TASKS, arguments, fork_server) as processes:
        # A parameter server serves until it is killed, as in plain TensorFlow.
        codes = codes_when_done(processes, TASKS[1:])
    assert all(process.poll() is not None for process in processes.values())
    return folder, codes


@pytest.mark.slow
@pytest.mark.parametrize("task", ["chief", "worker", "evaluator"])
def test_task_ends_by_itself(finished: Any, task: str) -> None:
    folder, codes = finished
    assert codes[task] == 0, log(folder, task)


@pytest.mark.slow
def test_parameter_server_was_serving_to_the_end(finished: Any) -> None:
    folder, codes = finished
    assert codes["ps"] is None, log(folder, "ps")


@pytest.mark.slow
@pytest.mark.parametrize("task", ["chief", "worker"])
def test_hooks_and_callbacks_of_every_trainer_ran(finished: Any, task: str) -> None:
    folder, _ = finished
    report = json.loads((folder / f"{task}.json").read_text())
    assert report["ended"] and 0 < report["steps"] <= MAX_STEPS
    assert report["events"][0] == "train_begin"
    # `on_train_end` comes once for the job, unless `hb.set_role` says otherwise.
    assert (report["events"][-1] == "train_end") is (task == "chief")
    assert any(event.startswith("epoch_end") for event in report["events"])


@pytest.mark.slow
def test_trainers_shared_the_work(finished: Any) -> None:
    folder, _ = finished
    steps = [
        json.loads((folder / f"{task}.json").read_text())["steps"]
        for task in ("chief", "worker")
    ]
    # Both tasks may be in a step when the last one is counted.
    assert MAX_STEPS <= sum(steps) <= MAX_STEPS + 2
    reader = tf.train.load_checkpoint(str(folder / "model"))
    assert reader.get_tensor("global_step") in range(MAX_STEPS, MAX_STEPS + 3)


@pytest.mark.slow
def test_evaluator_evaluated_the_last_checkpoint(finished: Any) -> None:
    folder, _ = finished
    steps = {step for step, _, _ in scenarios.events(folder / "model" / "eval")}
    assert max(steps) >= MAX_STEPS
