"""Clusters from the resolvers that TensorFlow ships."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf

from hookbridge import errors
from hookbridge.cluster import ClusterConfig

resolvers = tf.distribute.cluster_resolver


def test_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "SLURM_PROCID": "2",
        "SLURM_STEP_NUM_TASKS": "4",
        "SLURM_STEP_NODELIST": "node[07-08]",
        "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
    }.items():
        monkeypatch.setenv(name, value)
    resolver = resolvers.SlurmClusterResolver(
        jobs={"chief": 1, "ps": 1, "worker": 2}, gpus_per_node=2, auto_set_gpu=False
    )
    config = ClusterConfig.from_resolver(resolver)
    assert config == ClusterConfig(
        {
            "chief": ("node07:8888",),
            "ps": ("node07:8889",),
            "worker": ("node08:8888", "node08:8889"),
        },
        "worker",
        0,
    )
    assert not config.is_chief


class Pods:
    """The part of the Kubernetes client that TensorFlow's resolver uses."""

    def list_pod_for_all_namespaces(self, label_selector: str) -> Any:
        numbers = {"job-name=train-ps": [20], "job-name=train-worker": [10, 11]}
        return SimpleNamespace(
            items=[
                SimpleNamespace(
                    metadata=SimpleNamespace(name=f"pod{number}"),
                    status=SimpleNamespace(phase="Running", host_ip=f"10.0.0.{number}"),
                )
                for number in numbers[label_selector]
            ]
        )


def kubernetes() -> Any:
    return resolvers.KubernetesClusterResolver(
        job_to_label_mapping={
            "worker": ["job-name=train-worker"],
            "ps": ["job-name=train-ps"],
        },
        override_client=Pods(),
    )


def test_kubernetes() -> None:
    resolver = kubernetes()
    resolver.task_type, resolver.task_id = "ps", 0
    config = ClusterConfig.from_resolver(resolver)
    assert config.cluster == {
        "worker": ("10.0.0.10:8470", "10.0.0.11:8470"),
        "ps": ("10.0.0.20:8470",),
    }
    assert (config.task_type, config.task_index) == ("ps", 0)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ((None, None), "task_type=None .*Set `resolver.task_type`"),
        (("worker", 2), r"task\['index'\] is 2; expected less than 2"),
    ],
)
def test_a_task_that_the_resolver_does_not_know(task: Any, message: str) -> None:
    resolver = kubernetes()
    resolver.task_type, resolver.task_id = task
    with pytest.raises(errors.InvalidArgumentError, match=f"KubernetesC.* {message}"):
        ClusterConfig.from_resolver(resolver)


def test_tf_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    resolver = resolvers.TFConfigClusterResolver()
    assert ClusterConfig.from_resolver(resolver) == ClusterConfig()  # the job is local
    chief = ClusterConfig({"chief": ("a:1",), "worker": ("b:1",)}, "chief", 0)
    monkeypatch.setenv("TF_CONFIG", chief.to_json())
    resolver = resolvers.TFConfigClusterResolver()
    assert ClusterConfig.from_resolver(resolver) == chief


def test_what_is_no_resolver() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="resolver='worker'"):
        ClusterConfig.from_resolver("worker")
