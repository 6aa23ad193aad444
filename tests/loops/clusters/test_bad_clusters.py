"""Mistakes in a cluster are reported before anything starts; clusters by flags."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

import hookbridge as hb
from hookbridge.jobs.loops import ClusterConfig, LocalCluster, SessionCluster
from hookbridge.jobs.loops.clusters import serve
from hookbridge.jobs.loops.tasks.ports import held_ports
from hookbridge.jobs.loops.tasks.task_checks import config_of, flags_of

ONE_TENSORFLOW = True
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


@pytest.fixture
def jobs() -> Iterator[dict[str, tuple[str]]]:
    """The addresses of a worker and a server; nobody else gets their ports."""
    with held_ports(2) as (worker, server):
        yield {"worker": (f"127.0.0.1:{worker}",), "ps": (f"127.0.0.1:{server}",)}


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        jobs = {"worker": (f"127.0.0.1:{port}",), "ps": ("127.0.0.1:1",)}
        config = ClusterConfig(jobs, "worker", 0)
        with (
            pytest.raises(hb.errors.ClusterError, match=f"Port {port} of `worker`"),
            SessionCluster(config),
        ):
            raise AssertionError("the port is in use")


def test_a_server_that_never_comes_is_named(jobs: dict[str, tuple[str]]) -> None:
    with (
        pytest.raises(hb.errors.ClusterError, match=r"`ps` 0 .*127[.]0"),
        SessionCluster(ClusterConfig(jobs, "worker", 0), start_secs=0.5) as task,
        task.training_session(),
    ):
        raise AssertionError("there is no server")


def test_a_server_that_is_started_alone_ends(
    jobs: dict[str, tuple[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "LOOK_SECS", 0.2)
    with (
        pytest.raises(hb.errors.TaskLostError, match="No task that trains came"),
        SessionCluster(ClusterConfig(jobs, "ps", 0), start_secs=1) as cluster,
    ):
        cluster.serve()


HOSTS = {"ps_hosts": "h:1", "worker_hosts": "h:2,h:3"}


def flags(**changed: Any) -> dict[str, Any]:
    return {**HOSTS, "job_name": "worker", "task_index": 0, **changed}


def test_flags_are_a_cluster_whose_first_worker_is_the_chief() -> None:
    cluster = SessionCluster.from_flags(**flags(task_index="1"))
    assert cluster.config == ClusterConfig(
        {"ps": ("h:1",), "worker": ("h:2", "h:3")}, "worker", 1
    )
    assert (cluster.is_chief, cluster.is_server, cluster.num_replicas) == (0, 0, 2)
    assert SessionCluster.from_flags(**flags()).is_chief
    lists = flags(ps_hosts=["h:1"], worker_hosts=("h:2",), job_name="ps")
    assert SessionCluster.from_flags(**lists, lost_secs=3.0).is_server


def test_without_hosts_the_job_is_local() -> None:
    cluster = SessionCluster.from_flags(
        ps_hosts="", worker_hosts=None, job_name="", task_index=None
    )
    assert cluster.config == ClusterConfig()
    assert cluster.is_chief


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ps_hosts": ""}, r"--ps_hosts is \[\]; expected a list of addresses"),
        ({"worker_hosts": None}, r"--worker_hosts is \[\]; expected a list"),
        ({"worker_hosts": "h:2,h"}, "--worker_hosts is 'h'; expected an address"),
        ({"worker_hosts": "h:2,"}, "--worker_hosts is ''; expected an address"),
        ({"worker_hosts": "grpc://h:2"}, "without a scheme"),
        ({"ps_hosts": "h:2"}, "--worker_hosts and --ps_hosts"),
        ({"ps_hosts": 3}, "--ps_hosts is 3; expected a list"),
        ({"job_name": "chief"}, "--job_name='chief'; expected 'ps' or 'worker'"),
        ({"job_name": None}, "--job_name=None; expected"),
        ({"task_index": 2}, "--task_index=2; expected an integer from 0 to 1"),
        ({"task_index": None}, "--task_index=None; expected an integer"),
        ({"task_index": True}, "--task_index=True; expected an integer"),
    ],
)
def test_bad_flags_are_named(changed: Any, message: str) -> None:
    with pytest.raises(hb.errors.InvalidArgumentError, match=message) as error:
        SessionCluster.from_flags(**flags(**changed))
    assert "TF_CONFIG" not in str(error.value)


def test_a_chief_is_the_first_worker_in_flags() -> None:
    tasks = LocalCluster(num_workers=2, num_ps=1).configs()
    found = [flags_of(task) for task in tasks]
    values = [dict(flag.removeprefix("--").split("=") for flag in f) for f in found]
    assert [(v["job_name"], v["task_index"]) for v in values] == [
        ("worker", "0"),
        ("worker", "1"),
        ("worker", "2"),
        ("ps", "0"),
    ]
    assert [config_of(**v).is_chief for v in values] == [True, False, False, False]
    assert len(values[0]["worker_hosts"].split(",")) == 3
