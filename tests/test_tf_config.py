"""`TF_CONFIG`, read and checked."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tensorflow as tf

import hookbridge as hb
from hookbridge.ground.processes.tf_config import ClusterConfig, task_of

ONE_TENSORFLOW = True
CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "b:2"], "ps": ["c:1"]}


TASK = {"type": "worker", "index": 1}
BOSS = {"type": "boss", "index": 0}


def config(cluster: Any = CLUSTER, task: Any = None) -> str:
    return json.dumps({"cluster": cluster, "task": task or TASK})


def test_a_good_configuration_is_read_and_written_back() -> None:
    found = ClusterConfig.from_environment({"TF_CONFIG": config()})
    assert found.cluster == {job: tuple(hosts) for job, hosts in CLUSTER.items()}
    assert (found.task_type, found.task_index) == ("worker", 1)
    assert ClusterConfig.from_json(found.to_json()) == found


def test_without_a_cluster_the_job_is_local(subtests: pytest.Subtests) -> None:
    for text in ("", "  ", "{}", '{"environment": "cloud"}'):
        with subtests.test(str(text)):
            found = ClusterConfig.from_environment({"TF_CONFIG": text})
            assert found == ClusterConfig() == ClusterConfig.from_environment({})
            assert found.is_chief


def test_what_a_process_is_to_its_guests(subtests: pytest.Subtests) -> None:
    two = {"worker": ["a:1", "a:2"]}
    for cluster, kind, index, expected in (
        ({}, "master", 0, "local"),
        *((CLUSTER, kind, 0, kind) for kind in ("chief", "worker", "evaluator", "ps")),
        (two, "worker", 0, "chief"),
        (two, "worker", "1", "worker"),
        ({"master": ["a:1"]}, "master", 0, "chief"),
    ):
        with subtests.test(str(cluster)):
            text = config(cluster, {"type": kind, "index": index})
            assert task_of({"TF_CONFIG": text}) == expected
            is_chief = expected in ("local", "chief")
            assert ClusterConfig.from_json(text).is_chief is is_chief


@pytest.mark.parametrize("text", ["{", config(["a:1"]), config(task=BOSS)])
def test_a_bad_configuration_makes_nobody_a_worker(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(hb.errors.InvalidArgumentError, match="TF_CONFIG"):
        hb.as_hooks(hb.set_role(tf.compat.v1.train.StopAtStepHook(3), "chief"))


def test_addresses(subtests: pytest.Subtests) -> None:
    for address in ("localhost:1", "10.0.0.1:2222", "[::1]:65535", "my_h-0.svc.x:80"):
        with subtests.test(str(address)):
            text = config({"worker": [address]}, {"type": "worker", "index": 0})
            assert ClusterConfig.from_json(text).cluster["worker"] == (address,)


@pytest.mark.parametrize(
    "address",
    [
        *("grpc://localhost:2222", "localhost:2222/x", "no such host:2222"),
        *("localhost:0", "localhost:65536", "localhost:99999", "localhost:2222\n"),
        *("::1:2222", ":2222", 2222),
    ],
)
def test_what_is_no_address(address: Any) -> None:
    message = r"\['cluster'\]\['ps'\] is .*expected an address `host:port` with a port"
    with pytest.raises(hb.errors.InvalidArgumentError, match=message):
        ClusterConfig.from_json(config({**CLUSTER, "ps": [address]}))


def test_the_first_worker_as_chief(subtests: pytest.Subtests) -> None:
    cluster = {"worker": ("b:1", "b:2"), "ps": ("c:1",)}
    with_chief = {"chief": ("b:1",), "worker": ("b:2",), "ps": ("c:1",)}
    for kind, index, expected in (
        ("worker", 0, ("chief", 0)),
        ("worker", 1, ("worker", 0)),
        ("ps", 0, ("ps", 0)),
        ("evaluator", 0, ("evaluator", 0)),
    ):
        with subtests.test(str(kind)):
            found = ClusterConfig(cluster, kind, index).with_chief()
            assert found == ClusterConfig(with_chief, *expected)


def test_a_chief_stays_the_chief(subtests: pytest.Subtests) -> None:
    for found in (ClusterConfig(), ClusterConfig.from_json(config())):
        with subtests.test(str(found)):
            assert found.with_chief() is found


BAD = {
    "no_json": ("{cluster", r"TF_CONFIG is '{cluster'; expected JSON"),
    "nested_too_deeply": ("[" * 100_000, r"TF_CONFIG is '\[+\.\.\.\[+'; expected JSON"),
    "two_chief_keys": (
        '{"cluster": {"chief": ["a:1"], "chief": ["a:2"]}}',
        r"expected JSON \(it has the key 'chief' twice",
    ),
    "no_object": ("[1]", "expected a JSON object"),
    "no_cluster": (json.dumps({"task": TASK}), "expected the key `cluster`"),
    "no_task": (json.dumps({"cluster": CLUSTER}), "expected the key `task`"),
    "cluster_list": (config(["a:1"]), r"TF_CONFIG\['cluster'\] is \['a:1'\]"),
    "unknown_job": (config({"wroker": ["a:1"]}), "has the job 'wroker'"),
    "no_addresses": (config({"worker": []}), r"\['cluster'\]\['worker'\] is \[\]"),
    "bad_address": (config({"worker": ["host"]}), "expected an address `host:port`"),
    "same_address": (config({"worker": ["a:1", "a:1"]}), "a different address"),
    "two_chiefs": (config({"chief": ["a:1", "a:2"]}), "has 2 chiefs"),
    "chief_and_master": (
        config({"chief": ["a:1"], "master": ["a:2"]}),
        r"has 2 chiefs \(chief, master\)",
    ),
    "task_list": (config(task=[1]), r"TF_CONFIG\['task'\] is \[1\]"),
    "unknown_type": (config(task=BOSS), r"\['type'\] is 'boss'; expected one of chief"),
    "nobodys_role": (
        config({"worker": ["a:1"]}, {"type": "ps", "index": 0}),
        r"is 'ps', which TF_CONFIG\['cluster'\] does not have",
    ),
    "index_missing": (config(task={"type": "worker"}), r"\['index'\] is None"),
    **{
        f"index {index!r}": (
            config(task={"type": "worker", "index": index}),
            rf"\['index'\] is {index!r}{expected}",
        )
        for index, expected in ((2, "; expected less than 2"), ("²", ""), (-1, ""))
    },
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_a_bad_configuration_is_refused_by_its_key(case: str) -> None:
    text, message = BAD[case]
    with pytest.raises(hb.errors.InvalidArgumentError, match=message):
        ClusterConfig.from_json(text)
