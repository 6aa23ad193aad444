"""Estimators over real processes and with `tf.distribute` strategies; refusals."""

from __future__ import annotations

import json
import types
from pathlib import Path
from typing import Any

import estimator_scenarios as scenarios
import pytest
import tensorflow as tf
from cluster_processes import job
from fork_server import ForkServer

import hookbridge as hb
from hookbridge import errors
from hookbridge.estimator import estimator_training

STEPS = 8
# Of the slow job without a strategy: a worker begins after five seconds.
SLOW_STEPS = 500


# A parameter server serves until it is killed, as in plain TensorFlow.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "tasks"),
    [
        ("none", ["ps", "chief", "worker", "evaluator"]),
        ("one_device", ["local"]),
        ("mirrored", ["local"]),
        ("multi_worker", ["chief", "worker"]),
        ("parameter_server", ["ps", "chief", "worker"]),
    ],
)
def test_every_task_does_its_part(
    strategy: str, tasks: list[str], tmp_path: Path, fork_server: ForkServer
) -> None:
    model, ending = tmp_path / "model", [task for task in tasks if task != "ps"]
    goal = SLOW_STEPS if strategy == "none" else STEPS
    with job(
        tmp_path,
        "cluster_job.py",
        *(strategy, str(model), str(goal)),
        tasks=tasks,
        server=fork_server,
        alone=len(tasks) == 1,
    ) as it:
        codes = it.wait(ending)
    assert all(process.poll() is not None for process in it.processes.values())
    assert {task: codes[task] for task in ending} == dict.fromkeys(ending, 0), it.logs()
    trainers = [task for task in ending if task != "evaluator"]
    reports = {t: json.loads(it.report(t).read_text()) for t in trainers}
    assert all(report["ended"] for report in reports.values())
    steps = [report["steps"] for report in reports.values()]
    assert all(steps)
    step = tf.train.load_checkpoint(str(model)).get_tensor("global_step")
    if strategy in ("none", "parameter_server"):
        # Both tasks may be in a step when the last one is counted.
        assert goal <= sum(steps) <= goal + len(steps)
        assert step in range(goal, goal + len(steps) + 1)
    else:
        # Every process takes part in every step.
        assert steps == [goal] * len(steps) and step == goal
    if tasks == ["local"]:
        assert 0 < reports["local"]["loss"] < 10
    if strategy == "none":
        assert codes["ps"] is None
        assert max(s for s, _, _ in scenarios.events(model / "eval")) >= goal
        for task, report in reports.items():
            events = [e for e in report["events"] if not e.startswith("set_")]
            assert events[0] == "on_train_begin" and "on_epoch_end" in events
            # It comes once for the job, unless `hb.set_role` says otherwise.
            assert (events[-1] == "on_train_end") is (task == "chief")


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


# --- the configuration ------------------------------------------------------------

CLUSTER = {"chief": ["h:1"], "worker": ["h:2"]}


def config(monkeypatch: pytest.MonkeyPatch, cluster: Any = None, **changes: Any) -> Any:
    value = {"cluster": cluster, "task": {"type": "chief", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(value if cluster else {}))
    return hb.estimator.RunConfig(**changes)


def one_device() -> Any:
    return tf.distribute.OneDeviceStrategy("cpu:0")


def test_strategy_in_a_cluster_is_the_coordinator_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = config(monkeypatch, CLUSTER, train_distribute=one_device())
    assert estimator_training.should_run_distribute_coordinator(made)
    assert made.cluster_spec.as_dict() == CLUSTER


@pytest.mark.parametrize("with_cluster", [True, False])
def test_one_without_the_other_is_not(
    with_cluster: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = (
        config(monkeypatch, CLUSTER)
        if with_cluster
        else config(monkeypatch, train_distribute=one_device())
    )
    assert not estimator_training.should_run_distribute_coordinator(made)
    assert made.is_chief and made.num_worker_replicas == (2 if with_cluster else 1)


def test_strategy_given_twice_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    experimental = types.SimpleNamespace(
        train_distribute=one_device(), eval_distribute=None, remote_cluster=None
    )
    with pytest.raises(ValueError, match="train_distribute"):
        config(
            monkeypatch,
            train_distribute=one_device(),
            experimental_distribute=experimental,
        )


def test_train_in_a_process_of_a_cluster_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = config(monkeypatch, CLUSTER, train_distribute=one_device())
    estimator = types.SimpleNamespace(_config=made)
    with pytest.raises(
        errors.RefusedError,
        match=r"OneDeviceStrategy cannot run in this cluster.*train_and_evaluate",
    ):
        estimator_training.estimator_train(estimator, lambda *_: None, [])


def test_cluster_with_an_evaluator_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = config(
        monkeypatch, {**CLUSTER, "evaluator": ["h:3"]}, eval_distribute=one_device()
    )
    made._cluster_spec = tf.train.ClusterSpec({**CLUSTER, "evaluator": ["h:3"]})
    estimator = types.SimpleNamespace(_config=made)
    with pytest.raises(errors.RefusedError, match=r"`Estimator\.evaluate`.*evaluator"):
        estimator_training.estimator_evaluate(estimator, lambda *_: None, [])


def test_train_and_evaluate_without_a_mode_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    estimator = types.SimpleNamespace(config=config(monkeypatch))
    with pytest.raises(ValueError, match="expected one with `train_distribute`"):
        estimator_training.train_and_evaluate(estimator, None, None, None)
