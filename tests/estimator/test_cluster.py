"""`train_and_evaluate` over real processes: chief, worker, server, evaluator."""

from __future__ import annotations

import json
from pathlib import Path

import estimator_scenarios as scenarios
import pytest
import tensorflow as tf
from cluster_processes import job
from fork_server import ForkServer

import hookbridge as hb

MAX_STEPS = 500
TASKS = ["ps", "chief", "worker", "evaluator"]


@pytest.mark.slow
def test_every_task_does_its_part(tmp_path: Path, fork_server: ForkServer) -> None:
    model = tmp_path / "model"
    arguments = [str(model), str(MAX_STEPS)]
    with job(
        tmp_path, "cluster_job.py", *arguments, tasks=TASKS, server=fork_server
    ) as it:
        # A parameter server serves until it is killed, as in plain TensorFlow.
        codes = it.wait(TASKS[1:])
    assert all(process.poll() is not None for process in it.processes.values())
    assert codes == {"ps": None, "chief": 0, "worker": 0, "evaluator": 0}, it.logs()
    steps = 0
    for task in ("chief", "worker"):
        report = json.loads(it.report(task).read_text())
        assert report["ended"] and 0 < report["steps"] <= MAX_STEPS
        assert report["events"][0] == "train_begin"
        # `on_train_end` comes once for the job, unless `hb.set_role` says otherwise.
        assert (report["events"][-1] == "train_end") is (task == "chief")
        assert any(event.startswith("epoch_end") for event in report["events"])
        steps += report["steps"]
    # Both tasks may be in a step when the last one is counted.
    assert MAX_STEPS <= steps <= MAX_STEPS + 2
    reader = tf.train.load_checkpoint(str(model))
    assert reader.get_tensor("global_step") in range(MAX_STEPS, MAX_STEPS + 3)
    assert max(step for step, _, _ in scenarios.events(model / "eval")) >= MAX_STEPS


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
