"""Estimators with `tf.distribute` strategies, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import strategy_job
import tensorflow as tf
from cluster_processes import job
from fork_server import ForkServer

import hookbridge as hb
from hookbridge import errors
from hookbridge.estimator import estimator_training


def run(
    server: ForkServer,
    strategy: str,
    folder: Path,
    tasks: list[str],
    trainers: list[str],
) -> Any:
    """Runs a job to its end; returns the reports of its trainers."""
    arguments = [strategy, str(folder / "model")]
    alone = len(tasks) == 1
    with job(
        folder, "strategy_job.py", *arguments, tasks=tasks, server=server, alone=alone
    ) as it:
        codes = it.wait(trainers)
    for task in trainers:
        assert codes[task] == 0, it.log(task)
    return [json.loads(it.report(task).read_text()) for task in trainers]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["one_device", "mirrored"])
def test_strategies_of_one_process(
    strategy: str, tmp_path: Path, fork_server: ForkServer
) -> None:
    (report,) = run(fork_server, strategy, tmp_path, ["local"], ["local"])
    assert report["steps"] == strategy_job.STEPS
    reader = tf.train.load_checkpoint(str(tmp_path / "model"))
    assert reader.get_tensor("global_step") == strategy_job.STEPS
    assert 0 < report["loss"] < 10


@pytest.mark.slow
def test_workers_that_mirror_each_other(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    tasks = ["chief", "worker"]
    reports = run(fork_server, "multi_worker", tmp_path, tasks, tasks)
    # Both processes take part in every step.
    assert [report["steps"] for report in reports] == [strategy_job.STEPS] * 2


@pytest.mark.slow
def test_parameter_server_strategy(tmp_path: Path, fork_server: ForkServer) -> None:
    reports = run(
        fork_server,
        "parameter_server",
        tmp_path,
        ["ps", "chief", "worker"],
        ["chief", "worker"],
    )
    assert sum(report["steps"] for report in reports) >= strategy_job.STEPS
    assert all(report["steps"] for report in reports)


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
    distribute = tf.distribute
    experimental = type(
        "DistributeConfig",
        (),
        {
            "train_distribute": distribute.OneDeviceStrategy("cpu:0"),
            "eval_distribute": None,
            "remote_cluster": None,
        },
    )()
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
    estimator = type("Estimator", (), {"_config": made})()
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
    estimator = type("Estimator", (), {"_config": made})()
    with pytest.raises(errors.RefusedError, match=r"`Estimator\.evaluate`.*evaluator"):
        estimator_training.estimator_evaluate(estimator, lambda *_: None, [])


def test_train_and_evaluate_without_a_mode_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    estimator = type("Estimator", (), {"config": config(monkeypatch)})()
    with pytest.raises(ValueError, match="expected one with `train_distribute`"):
        estimator_training.train_and_evaluate(estimator, None, None, None)
