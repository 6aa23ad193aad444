"""Clusters described by the flags of TF1 programs."""

from __future__ import annotations

from typing import Any

import pytest

import hookbridge as hb
from hookbridge.loops import ClusterConfig, LocalCluster, SessionCluster
from hookbridge.loops.tasks.jobs import config_of, flags_of

ONE_TENSORFLOW = True
HOSTS = {"ps_hosts": "h:1", "worker_hosts": "h:2,h:3"}


def flags(**changed: Any) -> dict[str, Any]:
    return {**HOSTS, "job_name": "worker", "task_index": 0, **changed}


def test_flags_are_a_cluster_whose_first_worker_is_the_chief() -> None:
    cluster = SessionCluster.from_flags(**flags(task_index="1"))
    assert cluster.config == ClusterConfig(
        {"ps": ("h:1",), "worker": ("h:2", "h:3")}, "worker", 1
    )
    assert (cluster.is_chief, cluster.is_server, cluster.num_workers) == (0, 0, 2)
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
        ({"ps_hosts": ""}, "no --ps_hosts; expected the addresses"),
        ({"worker_hosts": None}, "no --worker_hosts; expected the addresses"),
        ({"worker_hosts": "h:2,h"}, "--worker_hosts is 'h'; expected an address"),
        ({"worker_hosts": "h:2,"}, "--worker_hosts is ''; expected an address"),
        ({"worker_hosts": "grpc://h:2"}, "without a scheme"),
        ({"ps_hosts": "h:2"}, "--worker_hosts has the address 'h:2' that --ps_hosts"),
        ({"ps_hosts": 3}, "--ps_hosts=3; expected addresses"),
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
