"""Clusters from the resolvers that TensorFlow ships."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf

from hookbridge import errors
from hookbridge.ground.processes.tf_config import ClusterConfig

resolvers = tf.distribute.cluster_resolver


def test_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "SLURM_PROCID": "2",
        "SLURM_STEP_NUM_TASKS": "4",
        "SLURM_STEP_NODELIST": "node[07-08]",
        "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
    }.items():
        monkeypatch.setenv(name, value)
    jobs = {"chief": 1, "ps": 1, "worker": 2}
    resolver = resolvers.SlurmClusterResolver(
        jobs=jobs, gpus_per_node=2, auto_set_gpu=False
    )
    config = ClusterConfig.from_resolver(resolver)
    workers = ("node08:8888", "node08:8889")
    cluster = {"chief": ("node07:8888",), "ps": ("node07:8889",), "worker": workers}
    assert config == ClusterConfig(cluster, "worker", 0)
    assert not config.is_chief


def pods(label_selector: str) -> Any:
    """What TensorFlow's resolver asks a Kubernetes client for."""
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


def test_kubernetes(subtests: pytest.Subtests) -> None:
    jobs = ("worker", "ps")
    resolver = resolvers.KubernetesClusterResolver(
        job_to_label_mapping={job: [f"job-name=train-{job}"] for job in jobs},
        override_client=SimpleNamespace(list_pod_for_all_namespaces=pods),
    )
    resolver.task_type, resolver.task_id = "ps", 0
    config = ClusterConfig.from_resolver(resolver)
    workers = ("10.0.0.10:8470", "10.0.0.11:8470")
    assert config.cluster == {"worker": workers, "ps": ("10.0.0.20:8470",)}
    assert (config.task_type, config.task_index) == ("ps", 0)
    for task, message in (
        ((None, None), "KubernetesC.* task_type=None .*Set `resolver.task_type`"),
        (("worker", 2), r"KubernetesC.* task\['index'\] is 2; expected less than 2"),
    ):
        with subtests.test(str(task)):
            resolver.task_type, resolver.task_id = task
            with pytest.raises(errors.InvalidArgumentError, match=message):
                ClusterConfig.from_resolver(resolver)
    with pytest.raises(errors.InvalidArgumentError, match="resolver='worker'"):
        ClusterConfig.from_resolver("worker")


def test_tf_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    resolver = resolvers.TFConfigClusterResolver()
    assert ClusterConfig.from_resolver(resolver) == ClusterConfig()  # the job is local
    chief = ClusterConfig({"chief": ("a:1",), "worker": ("b:1",)}, "chief", 0)
    monkeypatch.setenv("TF_CONFIG", chief.to_json())
    resolver = resolvers.TFConfigClusterResolver()
    assert ClusterConfig.from_resolver(resolver) == chief


def test_any_class_that_derives_from_the_base_class() -> None:
    jobs = {"chief": ["a:1"], "worker": ["b:1", "b:2"]}
    workers = ClusterConfig({k: tuple(v) for k, v in jobs.items()}, "worker", 1)
    spec = tf.train.ClusterSpec(jobs)
    simple = resolvers.SimpleClusterResolver(spec, task_type="worker", task_id=1)
    assert ClusterConfig.from_resolver(simple) == workers
    both = resolvers.UnionResolver(simple)
    both.task_type, both.task_id = "worker", 1
    assert ClusterConfig.from_resolver(both) == workers

    class Own(tf.distribute.cluster_resolver.ClusterResolver):  # type: ignore[misc]
        task_type, task_id = "worker", 1

        def cluster_spec(self) -> Any:
            return spec

        def master(self, *args: Any, **options: Any) -> str:
            return ""

        def num_accelerators(self, *args: Any, **options: Any) -> dict[str, int]:
            return {}

    assert ClusterConfig.from_resolver(Own()) == workers
