"""The cluster that `TF_CONFIG` describes, checked before any server starts.

Nothing else in the package reads `TF_CONFIG`. TensorFlow's own
`TFConfigClusterResolver` does not serve here: it calls `json.loads` and checks
nothing.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from hookbridge import errors

Task = Literal["local", "chief", "worker", "evaluator", "ps"]
CHIEF_TYPES = ("chief", "master")
SERVER_TYPES = (*CHIEF_TYPES, "worker", "ps")
# An evaluator talks to nobody: it may be left out of the cluster it evaluates.
TASK_TYPES = (*SERVER_TYPES, "evaluator")
# A host name, an IPv4 address, or an IPv6 address in brackets; then the port.
_ADDRESS = re.compile(r"(?:[^\s/:\[\]]+|\[[0-9A-Za-z:.%]+\]):([0-9]{1,5})")
_LAST_PORT = 65_535
_SHOWN_CHARS = 300
_EXAMPLE = (
    '{"cluster": {"chief": ["host0:2222"], "worker": ["host1:2222"], '
    '"ps": ["host2:2222"]}, "task": {"type": "worker", "index": 0}}'
)


@dataclass(frozen=True)
class ClusterConfig:
    """A cluster and this process's place in it.

    Attributes:
      cluster: `{job: ["host:port", ...]}`; empty for a job of one process.
      task_type: `"chief"`, `"master"`, `"worker"`, `"ps"` or `"evaluator"`.
      task_index: which task of its type, from 0.
    """

    cluster: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    task_type: str = "worker"
    task_index: int = 0

    def __post_init__(self) -> None:
        """Checks what was given.

        Raises:
          errors.InvalidArgumentError: no such cluster or task can be.
        """
        if self.cluster == {}:
            return
        name = "ClusterConfig.cluster"
        cluster = _cluster(self.cluster, name)
        task = {"type": self.task_type, "index": self.task_index}
        _task(task, cluster, ("ClusterConfig task", name))
        object.__setattr__(self, "cluster", cluster)

    @classmethod
    def of(cls, config: ClusterConfig | None) -> ClusterConfig:
        """What a public function was given as `config=`; None takes `TF_CONFIG`.

        Raises:
          errors.InvalidArgumentError: it is something else, or `TF_CONFIG` is
            malformed.
        """
        if config is None:
            return cls.from_environment()
        if not isinstance(config, cls):
            raise errors.InvalidArgumentError(
                f"Received `config={config!r}`; expected a "
                "`hookbridge.loops.ClusterConfig`, or None for `TF_CONFIG`."
            )
        return config

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] | None = None
    ) -> ClusterConfig:
        """Reads `TF_CONFIG`; without it, or if it is empty, the job is local.

        Args:
          environment: the variables; None takes the process's.

        Raises:
          errors.InvalidArgumentError: `TF_CONFIG` is malformed; the message names
            the key.
        """
        text = (os.environ if environment is None else environment).get("TF_CONFIG", "")
        return cls.from_json(text) if text.strip() else cls()

    @classmethod
    def from_json(cls, text: str) -> ClusterConfig:
        """Parses the value of `TF_CONFIG`.

        Raises:
          errors.InvalidArgumentError: it is malformed; the message names the key.
        """
        try:
            value = json.loads(text, object_pairs_hook=_object)
        except (ValueError, RecursionError) as e:
            raise _wrong("TF_CONFIG", text, f"JSON ({e})") from e
        if not isinstance(value, dict):
            raise _wrong("TF_CONFIG", value, "a JSON object")
        # Schedulers give a job of one process a task in a cluster without jobs.
        jobs, task = value.get("cluster"), value.get("task")
        if not jobs and (not task or jobs == {}):
            return cls()
        if "cluster" not in value:
            raise _wrong("TF_CONFIG", value, "the key `cluster`")
        cluster = _cluster(jobs)
        if "task" not in value:
            raise _wrong("TF_CONFIG", value, "the key `task`")
        return cls(cluster, *_task(task, cluster))

    @classmethod
    def from_resolver(cls, resolver: Any) -> ClusterConfig:
        """Asks one of TensorFlow's cluster resolvers.

        For jobs whose scheduler TensorFlow knows:
        `tf.distribute.cluster_resolver.SlurmClusterResolver`,
        `KubernetesClusterResolver`, `GCEClusterResolver`, `TFConfigClusterResolver`
        and what derives from `ClusterResolver`.

        Args:
          resolver: a `tf.distribute.cluster_resolver.ClusterResolver`.

        Raises:
          errors.InvalidArgumentError: it is no resolver, it does not know this
            process's task, or its cluster cannot be; the message names the key.
        """
        name = type(resolver).__name__
        if not callable(getattr(resolver, "cluster_spec", None)):
            raise errors.InvalidArgumentError(
                f"Received resolver={resolver!r}; expected a "
                "`tf.distribute.cluster_resolver.ClusterResolver`, such as "
                "`SlurmClusterResolver()`."
            )
        spec = resolver.cluster_spec()  # Slurm's learns its task here
        jobs = spec.as_dict() if spec else {}
        kind, index = resolver.task_type, resolver.task_id
        if not jobs and kind is None:
            return cls()
        source = f"{name}.cluster_spec()"
        cluster = _cluster(jobs, source)
        if kind is None or index is None:
            raise errors.InvalidArgumentError(
                f"{name} has task_type={kind!r} and task_id={index!r}; expected the "
                f"job and index of this process, one of {', '.join(cluster)}. Set "
                "`resolver.task_type` and `resolver.task_id`, or pass them to its "
                "constructor."
            )
        task = {"type": kind, "index": index}
        return cls(cluster, *_task(task, cluster, (f"{name} task", source)))

    @property
    def chief(self) -> tuple[str, int]:
        """Job and index of the chief: the first worker of a cluster without one."""
        return next((job for job in CHIEF_TYPES if job in self.cluster), "worker"), 0

    @property
    def is_chief(self) -> bool:
        """Whether this task initialises, saves and writes for all."""
        return (self.task_type, self.task_index) == self.chief

    @property
    def task(self) -> Task:
        """What this process is to the guests it calls."""
        if not self.cluster:
            return "local"
        if self.is_chief:
            return "chief"
        return cast(Task, self.task_type)

    def with_chief(self) -> ClusterConfig:
        """The same cluster, where the first worker is called chief if there is none.

        Estimator, for one, asks for a task of that type.
        """
        workers = self.cluster.get("worker", ())
        if not workers or any(job in self.cluster for job in CHIEF_TYPES):
            return self
        others = {job: hosts for job, hosts in self.cluster.items() if job != "worker"}
        cluster = {"chief": workers[:1], **others}
        if len(workers) > 1:
            cluster["worker"] = workers[1:]
        if self.task_type != "worker":
            return ClusterConfig(cluster, self.task_type, self.task_index)
        if self.task_index == 0:
            return ClusterConfig(cluster, "chief", 0)
        return ClusterConfig(cluster, "worker", self.task_index - 1)

    def to_json(self) -> str:
        """This configuration as the value of `TF_CONFIG`."""
        return json.dumps(
            {
                "cluster": {job: list(hosts) for job, hosts in self.cluster.items()},
                "task": {"type": self.task_type, "index": self.task_index},
            }
        )


def task_of(environment: Mapping[str, str] | None = None) -> Task:
    """What this process is, by `TF_CONFIG`.

    As in `tf.estimator.RunConfig`: the chief is the task `chief` or `master`; where
    there is neither, worker 0.

    Raises:
      errors.InvalidArgumentError: `TF_CONFIG` is malformed.
    """
    return ClusterConfig.from_environment(environment).task


def _cluster(
    value: Any, key: str = "TF_CONFIG['cluster']"
) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, Mapping) or not value:
        raise _wrong(key, value, "an object of jobs, `{job: [addresses]}`")
    owners: dict[str, str] = {}
    for job, hosts in value.items():
        name = f"{key}['{job}']"
        if job not in TASK_TYPES:
            raise errors.InvalidArgumentError(
                f"{key} has the job {job!r}; expected jobs out of "
                f"{', '.join(TASK_TYPES)}."
            )
        if not isinstance(hosts, (list, tuple)) or not hosts:
            raise _wrong(name, hosts, 'a list of addresses such as `["host:2222"]`')
        for address in hosts:
            if not _is_address(address):
                raise _wrong(
                    name,
                    address,
                    f"an address `host:port` with a port from 1 to {_LAST_PORT}, "
                    "without a scheme, and IPv6 in brackets",
                )
            if address in owners:
                raise errors.InvalidArgumentError(
                    f"{name} has the address {address!r} that {owners[address]} has "
                    "too; expected an address of its own for each task."
                )
            owners[address] = name
    chiefs = [job for job in CHIEF_TYPES for _ in value.get(job, ())]
    if len(chiefs) > 1:
        raise errors.InvalidArgumentError(
            f"{key} has {len(chiefs)} chiefs ({', '.join(chiefs)}); expected at most "
            "one. Make the others workers."
        )
    return {job: tuple(hosts) for job, hosts in value.items()}


def _is_address(value: Any) -> bool:
    found = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    return found is not None and 1 <= int(found[1]) <= _LAST_PORT


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without double keys: of two values one would be lost."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"it has the key {key!r} twice in one object")
        found[key] = value
    return found


def _task(
    value: Any,
    cluster: Mapping[str, tuple[str, ...]],
    keys: tuple[str, str] = ("TF_CONFIG['task']", "TF_CONFIG['cluster']"),
) -> tuple[str, int]:
    key, source = keys
    if not isinstance(value, dict):
        raise _wrong(key, value, 'an object `{"type": ..., "index": ...}`')
    kind, index = value.get("type"), value.get("index")
    if not isinstance(kind, str) or kind not in TASK_TYPES:
        raise _wrong(f"{key}['type']", kind, f"one of {', '.join(TASK_TYPES)}")
    if kind not in cluster and kind != "evaluator":
        raise errors.InvalidArgumentError(
            f"{key}['type'] is {kind!r}, which {source} does not have; "
            f"expected one of its jobs: {', '.join(cluster)}."
        )
    # Schedulers write numbers as strings.
    if isinstance(index, str) and index.isdecimal():
        index = int(index)
    if isinstance(index, bool) or not isinstance(index, int) or index < 0:
        raise _wrong(f"{key}['index']", index, "an integer of at least 0")
    tasks = len(cluster.get(kind, ()))
    if kind in cluster and index >= tasks:
        raise errors.InvalidArgumentError(
            f"{key}['index'] is {index}; expected less than {tasks}, the number of "
            f"{kind!r} tasks in {source}."
        )
    return kind, index


def _wrong(key: str, value: Any, expected: str) -> errors.InvalidArgumentError:
    shown = repr(value)
    if len(shown) > _SHOWN_CHARS:
        shown = f"{shown[:_SHOWN_CHARS]}..."
    return errors.InvalidArgumentError(
        f"{key} is {shown}; expected {expected}. For example {_EXAMPLE}."
    )
