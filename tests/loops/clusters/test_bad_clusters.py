"""Mistakes in a cluster are reported before anything starts."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

import hookbridge as hb
from hookbridge.loops import ClusterConfig, SessionCluster
from hookbridge.loops.clusters import serve
from hookbridge.loops.tasks.local_cluster import free_ports

JOBS = {"worker": ("h:1", "h:2"), "ps": ("h:3",)}


def test_malformed_tf_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": "h:1"}, "task": {}}')
    with pytest.raises(hb.errors.InvalidArgumentError, match=r"\['worker'\]"):
        SessionCluster()


@pytest.mark.parametrize(
    ("cluster", "task", "message"),
    [
        ({"worker": ("h:1", "h:2")}, ("worker", 0), "expected also 'ps'"),
        ({"ps": ("h:1",)}, ("ps", 0), "nobody trains"),
        (JOBS, ("evaluator", 0), "checkpoints_until_stop"),
        (JOBS, ("chief", 0), r"\['type'\] is 'chief'"),
    ],
)
def test_roles_that_nobody_has(cluster: Any, task: Any, message: str) -> None:
    with pytest.raises(hb.errors.InvalidArgumentError, match=message):
        SessionCluster(ClusterConfig(cluster, *task))


@pytest.mark.parametrize("task", ["chief", "worker", "evaluator"])
def test_estimators_that_share_nothing(
    task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {
        "cluster": {"chief": ["h:1"], "worker": ["h:2"]},
        "task": {"type": task, "index": 0},
    }
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    estimator = hb.estimator.Estimator(lambda features, labels, mode: None)
    specs = (
        hb.estimator.TrainSpec(lambda: None, max_steps=1),
        hb.estimator.EvalSpec(lambda: None),
    )
    with pytest.raises(hb.errors.InvalidArgumentError, match="expected also 'ps'"):
        hb.loops.train_and_evaluate(estimator, *specs)


def test_port_in_use_is_named() -> None:
    ports = free_ports(2)
    cluster = {"worker": (f"127.0.0.1:{ports[0]}",), "ps": (f"127.0.0.1:{ports[1]}",)}
    config = ClusterConfig(cluster, "worker", 0)
    with socket.socket() as other:
        other.bind(("127.0.0.1", ports[0]))
        other.listen()
        with (
            pytest.raises(hb.errors.ClusterError, match=f"Port {ports[0]} of `worker`"),
            SessionCluster(config),
        ):
            raise AssertionError("the port is in use")


def test_server_that_never_comes_is_named() -> None:
    ports = free_ports(2)
    cluster = {"worker": (f"127.0.0.1:{ports[0]}",), "ps": (f"127.0.0.1:{ports[1]}",)}
    config = ClusterConfig(cluster, "worker", 0)
    with (
        pytest.raises(hb.errors.ClusterError, match=f"`ps` 0 .*{ports[1]}"),
        SessionCluster(config, start_secs=0.5) as task,
        task.training_session(),
    ):
        raise AssertionError("there is no server")


def test_a_server_that_is_started_alone_says_that_it_waits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serve, "LOOK_SECS", 0.2)
    monkeypatch.setattr(serve, "SAYS_SO_AFTER_SECS", 0.5)
    worker, server = (f"127.0.0.1:{port}" for port in free_ports(2))
    config = ClusterConfig({"worker": (worker,), "ps": (server,)}, "ps", 0)
    with (
        pytest.raises(hb.errors.TaskLostError, match="No task that trains came"),
        SessionCluster(config, start_secs=2) as cluster,
    ):
        cluster.serve()
    assert caplog.text.count("`ps` 0 waits for the tasks that train, 2 s at") == 1


def test_without_a_cluster_it_trains_in_one_process() -> None:
    import tensorflow as tf

    v1 = tf.compat.v1
    with SessionCluster(ClusterConfig()) as cluster, tf.Graph().as_default():
        with v1.device(cluster.device_setter()):
            step = v1.train.get_or_create_global_step()
            train_op = v1.assign_add(step, 1)
        hooks = hb.as_hooks([v1.train.StopAtStepHook(last_step=3)])
        with cluster.training_session(hooks) as session:
            while not session.should_stop():
                last = session.run(train_op)
    assert last == 3
