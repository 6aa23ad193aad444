"""Mistakes in a cluster are reported before anything starts."""

from __future__ import annotations

import socket
from typing import Any

import pytest

import hookbridge as hb
from hookbridge.loops import ClusterConfig, SessionCluster
from hookbridge.loops.clusters import serve
from hookbridge.loops.tasks.local_cluster import free_ports

JOBS = {"worker": ("h:1", "h:2"), "ps": ("h:3",)}


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


def on_free_ports(task: str) -> ClusterConfig:
    worker, server = (f"127.0.0.1:{port}" for port in free_ports(2))
    return ClusterConfig({"worker": (worker,), "ps": (server,)}, task, 0)


def test_a_port_in_use_is_named() -> None:
    config = on_free_ports("worker")
    port = int(config.cluster["worker"][0].rpartition(":")[2])
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        with (
            pytest.raises(hb.errors.ClusterError, match=f"Port {port} of `worker`"),
            SessionCluster(config),
        ):
            raise AssertionError("the port is in use")


def test_a_server_that_never_comes_is_named() -> None:
    config = on_free_ports("worker")
    with (
        pytest.raises(hb.errors.ClusterError, match=r"`ps` 0 .*127[.]0"),
        SessionCluster(config, start_secs=0.5) as task,
        task.training_session(),
    ):
        raise AssertionError("there is no server")


def test_a_server_that_is_started_alone_says_that_it_waits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serve, "LOOK_SECS", 0.2)
    monkeypatch.setattr(serve, "SAYS_SO_AFTER_SECS", 0.5)
    with (
        pytest.raises(hb.errors.TaskLostError, match="No task that trains came"),
        SessionCluster(on_free_ports("ps"), start_secs=1) as cluster,
    ):
        cluster.serve()
    assert caplog.text.count("`ps` 0 waits for the tasks that train, 1 s at") == 1
