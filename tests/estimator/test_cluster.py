"""`train_and_evaluate` over real processes: chief, worker, server, evaluator."""

from __future__ import annotations

import json
from typing import Any

import estimator_scenarios as scenarios
import pytest
import tensorflow as tf
from cluster_processes import job
from fork_server import ForkServer

import hookbridge as hb

MAX_STEPS = 500
TASKS = ["ps", "chief", "worker", "evaluator"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> Any:
    """A finished job, and the exit codes of its processes."""
    folder = tmp_path_factory.mktemp("cluster")
    arguments = [str(folder / "model"), str(MAX_STEPS)]
    with job(
        folder, "cluster_job.py", *arguments, tasks=TASKS, server=fork_server
    ) as it:
        # A parameter server serves until it is killed, as in plain TensorFlow.
        codes = it.wait(TASKS[1:])
    assert all(process.poll() is not None for process in it.processes.values())
    return it, codes


@pytest.mark.slow
@pytest.mark.parametrize("task", ["chief", "worker", "evaluator"])
def test_task_ends_by_itself(finished: Any, task: str) -> None:
    it, codes = finished
    assert codes[task] == 0, it.log(task)


@pytest.mark.slow
def test_parameter_server_was_serving_to_the_end(finished: Any) -> None:
    it, codes = finished
    assert codes["ps"] is None, it.log("ps")


@pytest.mark.slow
@pytest.mark.parametrize("task", ["chief", "worker"])
def test_hooks_and_callbacks_of_every_trainer_ran(finished: Any, task: str) -> None:
    it, _ = finished
    report = json.loads(it.report(task).read_text())
    assert report["ended"] and 0 < report["steps"] <= MAX_STEPS
    assert report["events"][0] == "train_begin"
    # `on_train_end` comes once for the job, unless `hb.set_role` says otherwise.
    assert (report["events"][-1] == "train_end") is (task == "chief")
    assert any(event.startswith("epoch_end") for event in report["events"])


@pytest.mark.slow
def test_trainers_shared_the_work(finished: Any) -> None:
    it, _ = finished
    steps = [
        json.loads(it.report(task).read_text())["steps"] for task in ("chief", "worker")
    ]
    # Both tasks may be in a step when the last one is counted.
    assert MAX_STEPS <= sum(steps) <= MAX_STEPS + 2
    reader = tf.train.load_checkpoint(str(it.folder / "model"))
    assert reader.get_tensor("global_step") in range(MAX_STEPS, MAX_STEPS + 3)


@pytest.mark.slow
def test_evaluator_evaluated_the_last_checkpoint(finished: Any) -> None:
    it, _ = finished
    steps = {step for step, _, _ in scenarios.events(it.folder / "model" / "eval")}
    assert max(steps) >= MAX_STEPS


def test_estimators_that_share_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    config = hb.loops.ClusterConfig(
        {"chief": ("h:1",), "worker": ("h:2",)}, "evaluator", 0
    )
    monkeypatch.setenv("TF_CONFIG", config.to_json())
    estimator = hb.estimator.Estimator(lambda features, labels, mode: None)
    specs = (
        hb.estimator.TrainSpec(lambda: None, max_steps=1),
        hb.estimator.EvalSpec(lambda: None),
    )
    with pytest.raises(hb.errors.InvalidArgumentError, match="expected also 'ps'"):
        hb.loops.train_and_evaluate(estimator, *specs)
