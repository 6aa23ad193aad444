"""`TF_CONFIG`, read and checked."""

from __future__ import annotations

import json
from typing import Any

import pytest

import hookbridge as hb
from hookbridge.loops.cluster import ClusterConfig

CLUSTER = {
    "chief": ["a:1"],
    "worker": ["b:1", "b:2"],
    "ps": ["c:1"],
}


def config(cluster: Any = CLUSTER, task: Any = None) -> str:
    return json.dumps(
        {"cluster": cluster, "task": task or {"type": "worker", "index": 1}}
    )


def test_a_good_configuration_is_read_and_written_back() -> None:
    found = ClusterConfig.from_environment({"TF_CONFIG": config()})
    assert found.cluster == {job: tuple(hosts) for job, hosts in CLUSTER.items()}
    assert (found.task_type, found.task_index) == ("worker", 1)
    assert ClusterConfig.from_json(found.to_json()) == found


@pytest.mark.parametrize("text", ["", "  ", "{}", '{"environment": "cloud"}'])
def test_without_a_cluster_the_job_is_local(text: str) -> None:
    found = ClusterConfig.from_environment({"TF_CONFIG": text})
    assert found == ClusterConfig() == ClusterConfig.from_environment({})
    assert found.is_chief


@pytest.mark.parametrize(
    ("cluster", "task", "chief"),
    [
        (CLUSTER, ("chief", 0), True),
        (CLUSTER, ("worker", 0), False),
        (CLUSTER, ("ps", 0), False),
        (CLUSTER, ("evaluator", 0), False),
        ({"worker": ["a:1", "a:2"]}, ("worker", 0), True),
        ({"worker": ["a:1", "a:2"]}, ("worker", "1"), False),
        ({"master": ["a:1"]}, ("master", 0), True),
    ],
)
def test_who_is_the_chief(cluster: Any, task: tuple[str, Any], chief: bool) -> None:
    text = config(cluster, {"type": task[0], "index": task[1]})
    assert ClusterConfig.from_json(text).is_chief is chief


BAD = {
    "no_json": ("{cluster", r"TF_CONFIG is '{cluster'; expected JSON"),
    "no_object": ("[1]", "expected a JSON object"),
    "no_cluster": (
        '{"task": {"type": "worker", "index": 0}}',
        "expected the key `cluster`",
    ),
    "no_task": (json.dumps({"cluster": CLUSTER}), "expected the key `task`"),
    "cluster_list": (config(["a:1"]), r"TF_CONFIG\['cluster'\] is \['a:1'\]"),
    "unknown_job": (config({"wroker": ["a:1"]}), "has the job 'wroker'"),
    "no_addresses": (config({"worker": []}), r"\['cluster'\]\['worker'\] is \[\]"),
    "bad_address": (config({"worker": ["host"]}), "expected an address `host:port`"),
    "same_address": (config({"worker": ["a:1", "a:1"]}), "address of its own"),
    "two_chiefs": (config({"chief": ["a:1", "a:2"]}), "has 2 chiefs"),
    "chief_and_master": (
        config({"chief": ["a:1"], "master": ["a:2"]}),
        r"has 2 chiefs \(chief, master\)",
    ),
    "task_list": (config(task=[1]), r"TF_CONFIG\['task'\] is \[1\]"),
    "unknown_type": (
        config(task={"type": "boss", "index": 0}),
        r"\['type'\] is 'boss'; expected one of chief",
    ),
    "nobodys_role": (
        config({"worker": ["a:1"]}, {"type": "ps", "index": 0}),
        r"is 'ps', which TF_CONFIG\['cluster'\] does not have",
    ),
    "index_range": (
        config(task={"type": "worker", "index": 2}),
        r"\['index'\] is 2; expected less than 2",
    ),
    "index_missing": (config(task={"type": "worker"}), r"\['index'\] is None"),
    "index_negative": (
        config(task={"type": "worker", "index": -1}),
        r"\['index'\] is -1",
    ),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_a_bad_configuration_is_refused_by_its_key(case: str) -> None:
    text, message = BAD[case]
    with pytest.raises(hb.errors.InvalidArgumentError, match=message):
        ClusterConfig.from_json(text)
