"""Estimators over real processes and with `tf.distribute` strategies; refusals."""

from __future__ import annotations

import functools
import json
import types
from pathlib import Path
from typing import Any

import estimator_scenarios as scenarios
import pytest
import tensorflow as tf
from cluster_processes import job
from fork_server import ForkServer
from restored_estimator import only_restored

import hookbridge as hb
from hookbridge import errors
from hookbridge.estimator import estimator_training
from hookbridge.testing import EventLog, RecordingHook

STEPS = 8
MORE_STEPS = 40  # of the job without a strategy: both tasks see the end of an epoch


def local_strategy(name: str) -> Any:
    if name == "one_device":
        return one_device()
    # The default reduction never ends between CPUs of one graph.
    reduction = tf.distribute.ReductionToOneDevice()
    return tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"], reduction)


@pytest.mark.parametrize("name", ["one_device", "mirrored"])
def test_a_strategy_in_one_process(name: str, tmp_path: Path) -> None:
    log = EventLog()
    result, _ = hb.estimator.train_and_evaluate(
        scenarios.custom(tmp_path, train_distribute=local_strategy(name)),
        hb.estimator.TrainSpec(
            scenarios.input_fn(), max_steps=3, hooks=[RecordingHook(log, "hook")]
        ),
        scenarios.evaluation(),
    )
    assert log.counts("hook")["after_run"] == 3 and log.counts("hook")["end"] == 1
    assert result["global_step"] == 3 and 0 < result["loss"] < 10


newest = functools.partial(pytest.param, marks=pytest.mark.one_tensorflow)
newest_of_all = functools.partial(
    pytest.param, marks=[pytest.mark.one_tensorflow, pytest.mark.exhaustive]
)


# A parameter server serves until it is killed, as in plain TensorFlow.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "tasks"),
    [
        ("none", ["ps", "chief", "worker", "evaluator"]),
        newest("multi_worker", ["chief", "worker"]),
        newest_of_all("parameter_server", ["ps", "chief", "worker"]),
    ],
)
def test_every_task_does_its_part(
    strategy: str, tasks: list[str], tmp_path: Path, fork_server: ForkServer
) -> None:
    model, ending = tmp_path / "model", [task for task in tasks if task != "ps"]
    goal = MORE_STEPS if strategy == "none" else STEPS
    arguments = (strategy, str(model), str(goal))
    with job(
        tmp_path, "cluster_job.py", *arguments, tasks=tasks, server=fork_server
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
    if strategy == "multi_worker":
        # Every process takes part in every step.
        assert steps == [goal] * len(steps) and step == goal
    else:
        # Both tasks may be in a step when the last one is counted.
        assert goal <= sum(steps) <= goal + len(steps)
        assert step in range(goal, goal + len(steps) + 1)
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


def test_who_runs_a_strategy_and_a_cluster(
    subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = estimator_training.should_run_distribute_coordinator
    both = config(monkeypatch, CLUSTER, train_distribute=one_device())
    assert runs(both) and both.cluster_spec.as_dict() == CLUSTER
    alone = config(monkeypatch, train_distribute=one_device())
    cluster = config(monkeypatch, CLUSTER)
    for made, workers in ((alone, 1), (cluster, 2)):
        with subtests.test(str(made)):
            assert not runs(made)
            assert made.is_chief and made.num_worker_replicas == workers


@only_restored
@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"train_distribute": 1}, "Received both `train_distribute`"),
        ({"remote_cluster": CLUSTER}, "remote_cluster`; set one of them"),
    ],
)
def test_configurations_that_are_refused(
    option: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = dict.fromkeys(("train_distribute", "eval_distribute", "remote_cluster"))
    experimental = types.SimpleNamespace(**{**empty, **option})
    with pytest.raises(ValueError, match=message):
        config(
            monkeypatch,
            CLUSTER,
            train_distribute=one_device(),
            experimental_distribute=experimental,
        )


@pytest.mark.parametrize(
    ("method", "cluster", "reason"),
    [
        ("train", CLUSTER, "each process of this cluster runs one task"),
        ("evaluate", {**CLUSTER, "evaluator": ["h:3"]}, "the cluster has an evaluator"),
    ],
)
def test_one_task_of_a_cluster_is_refused(
    method: str, cluster: Any, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    strategies = {"train_distribute": one_device(), "eval_distribute": one_device()}
    made = config(monkeypatch, CLUSTER, **strategies)
    made._cluster_spec = tf.train.ClusterSpec(cluster)
    estimator = types.SimpleNamespace(_config=made)
    with pytest.raises(
        errors.RefusedError,
        match=rf"`Estimator\.{method}` with OneDevice.*: {reason}.*train_and_evaluate",
    ):
        getattr(estimator_training, f"estimator_{method}")(estimator, print, [])
