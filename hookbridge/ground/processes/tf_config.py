"""The cluster that `TF_CONFIG` describes, checked before any server starts.

Nothing else in the package reads `TF_CONFIG`. TensorFlow's own
`TFConfigClusterResolver` is not used here: it calls `json.loads` and checks nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from hookbridge import errors
from hookbridge.ground.arguments import instance, shown
from hookbridge.ground.processes.cluster_checks import (
    CHIEF_TYPES,
    check_cluster,
    check_task,
    strict_object,
    wrong,
)

Task = Literal["local", "chief", "worker", "evaluator", "ps"]


@dataclass(frozen=True)
class ClusterConfig:
    """A cluster and this process's place in it.

    It holds what `TF_CONFIG` says, as
    `tf.distribute.cluster_resolver.TFConfigClusterResolver` reads it.

    Attributes:
      cluster: `{job: ["host:port", ...]}`; empty for a job of one process.
      task_type: `"chief"`, `"master"`, `"worker"`, `"ps"` or `"evaluator"`.
      task_index: which task of its type, from 0.

    Raises:
      errors.InvalidArgumentError: the cluster or the task is not valid.
    """

    cluster: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    task_type: str = "worker"
    task_index: int = 0

    def __post_init__(self) -> None:
        if self.cluster == {}:
            return
        name = "ClusterConfig.cluster"
        cluster = check_cluster(self.cluster, name)
        task = {"type": self.task_type, "index": self.task_index}
        check_task(task, cluster, ("ClusterConfig task", name))
        object.__setattr__(self, "cluster", cluster)

    @classmethod
    def of(cls, config: ClusterConfig | None) -> ClusterConfig:
        """Return the cluster for the argument `config=` of a public function.

        Args:
          config: a `ClusterConfig`; None takes `TF_CONFIG`.
        """
        if config is None:
            return cls.from_environment()
        if not isinstance(config, cls):
            raise errors.InvalidArgumentError(
                f"Received `config={shown(config)}`; expected an "
                "`hb.loops.ClusterConfig`, or None for `TF_CONFIG`."
            )
        return config

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] | None = None
    ) -> ClusterConfig:
        """Read `TF_CONFIG`; without it, or if it is empty, the job is local.

        Args:
          environment: the environment variables; None takes the process's.

        Raises:
          errors.InvalidArgumentError: `TF_CONFIG` is malformed; the message names
            the key.
        """
        variables = os.environ if environment is None else environment
        instance("environment", variables, Mapping, "a mapping, such as `os.environ`")
        text = instance("TF_CONFIG", variables.get("TF_CONFIG", ""), str, "text")
        return cls.from_json(text) if text.strip() else cls()

    @classmethod
    def from_json(cls, text: str) -> ClusterConfig:
        """Parse the value of `TF_CONFIG`.

        Args:
          text: the value, a JSON object.

        Raises:
          errors.InvalidArgumentError: the string is malformed; the message names the
            key.
        """
        instance("TF_CONFIG", text, (str, bytes), "a JSON object as text")
        try:
            value = json.loads(text, object_pairs_hook=strict_object)
        except (ValueError, RecursionError) as e:
            raise wrong("TF_CONFIG", text, f"JSON ({e})") from e
        if not isinstance(value, dict):
            raise wrong("TF_CONFIG", value, "a JSON object")
        # For a job of one process, schedulers write a task and an empty cluster.
        jobs, task = value.get("cluster"), value.get("task")
        if not jobs and (not task or jobs == {}):
            return cls()
        if "cluster" not in value:
            raise wrong("TF_CONFIG", value, "the key `cluster`")
        cluster = check_cluster(jobs)
        if "task" not in value:
            raise wrong("TF_CONFIG", value, "the key `task`")
        return cls(cluster, *check_task(task, cluster))

    @classmethod
    def from_resolver(cls, resolver: Any) -> ClusterConfig:
        """Read the cluster from one of TensorFlow's cluster resolvers.

        It is for jobs whose scheduler TensorFlow knows:
        `tf.distribute.cluster_resolver.SlurmClusterResolver`,
        `KubernetesClusterResolver`, `GCEClusterResolver`, `TFConfigClusterResolver`
        and every class that derives from `ClusterResolver`.

        Args:
          resolver: a `tf.distribute.cluster_resolver.ClusterResolver`.

        Raises:
          errors.InvalidArgumentError: `resolver` is not a resolver, it does not know
            this process's task, or its cluster is not valid; the message names the key.
        """
        name = type(resolver).__name__
        if not callable(getattr(resolver, "cluster_spec", None)):
            raise errors.InvalidArgumentError(
                f"Received resolver={shown(resolver)}; expected a "
                "`tf.distribute.cluster_resolver.ClusterResolver`, such as "
                "`SlurmClusterResolver()`."
            )
        spec = resolver.cluster_spec()  # Slurm's resolver finds its task in this call
        jobs = spec.as_dict() if spec else {}
        kind, index = resolver.task_type, resolver.task_id
        if not jobs and kind is None:
            return cls()
        source = f"{name}.cluster_spec()"
        cluster = check_cluster(jobs, source)
        if kind is None or index is None:
            raise errors.InvalidArgumentError(
                f"{name} has task_type={shown(kind)} and task_id={shown(index)}; "
                f"expected the job and index of this process, one of "
                f"{', '.join(cluster)}. Set "
                "`resolver.task_type` and `resolver.task_id`, or pass them to its "
                "constructor."
            )
        task = {"type": kind, "index": index}
        return cls(cluster, *check_task(task, cluster, (f"{name} task", source)))

    @property
    def chief(self) -> tuple[str, int]:
        """Job and index of the chief: the first worker of a cluster without one."""
        return next((job for job in CHIEF_TYPES if job in self.cluster), "worker"), 0

    @property
    def is_chief(self) -> bool:
        """Return whether this task initialises, saves and writes for all."""
        return (self.task_type, self.task_index) == self.chief

    @property
    def task(self) -> Task:
        """The task of this process, as its guests see it."""
        if not self.cluster:
            return "local"
        return "chief" if self.is_chief else cast(Task, self.task_type)

    def with_chief(self) -> ClusterConfig:
        """Return this cluster with a chief: without one, the first worker becomes it.

        Estimator, for example, requires a chief.
        """
        workers = self.cluster.get("worker", ())
        if not workers or any(job in self.cluster for job in CHIEF_TYPES):
            return self
        cluster = {"chief": workers[:1], **self.cluster, "worker": workers[1:]}
        cluster = {job: hosts for job, hosts in cluster.items() if hosts}
        if self.task_type != "worker":
            return ClusterConfig(cluster, self.task_type, self.task_index)
        if self.task_index == 0:
            return ClusterConfig(cluster, "chief", 0)
        return ClusterConfig(cluster, "worker", self.task_index - 1)

    def to_json(self) -> str:
        """Return this configuration as the value of `TF_CONFIG`."""
        return json.dumps(
            {
                "cluster": dict(self.cluster),
                "task": {"type": self.task_type, "index": self.task_index},
            }
        )


def task_of(environment: Mapping[str, str] | None = None) -> Task:
    """Return the task of this process, by `TF_CONFIG`.

    As in `tf.estimator.RunConfig`, the chief is the task `chief` or `master`, or
    worker 0 if there is neither.
    """
    return ClusterConfig.from_environment(environment).task
