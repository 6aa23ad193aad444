"""What an orchestrator is asked for, and the pods of Kubernetes for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from hookbridge import errors
from hookbridge.cluster_config.job_config import JobConfig
from hookbridge.cluster_config.machines import machine

PORT = 2222
# A TFJob's controller knows the container by this name.
CONTAINER = "tensorflow"
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
# Of a service's name, which has the task behind it, such as `-evaluator-0`.
_LONGEST_NAME = 63 - len("-evaluator-0-0")
_MIB = 1024
_MODEL_VOLUME = "model"


class Replicas(NamedTuple):
    """The tasks of one kind; `key` names their machine type in a `config.yaml`."""

    job: str
    number: int
    machine: str
    key: str


@dataclass(frozen=True)
class JobOrder:
    """A job for an orchestrator; `volume`, `CLAIM:/folder`, has its model directory."""

    config: JobConfig
    command: tuple[str, ...]
    name: str
    image: str = ""
    grace_secs: float = 60.0
    volume: str = ""

    def __post_init__(self) -> None:
        """Checks the values; messages name their flags."""
        if not _NAME.fullmatch(self.name) or len(self.name) > _LONGEST_NAME:
            raise errors.InvalidArgumentError(
                f"Received --name={self.name!r}; expected at most {_LONGEST_NAME} "
                "small letters, digits and dashes, with a letter first and no dash "
                "last, as in every host name."
            )
        claim, _, folder = self.volume.partition(":")
        if self.volume and not (_NAME.fullmatch(claim) and folder.startswith("/")):
            raise errors.InvalidArgumentError(
                f"Received --volume={self.volume!r}; expected the name of a "
                "PersistentVolumeClaim and a folder, for example models:/models."
            )

    @property
    def replicas(self) -> list[Replicas]:
        """The kinds of tasks that the job has, the chief first."""
        config = self.config
        kinds = [
            Replicas("chief", 1, config.master_type, "masterType"),
            Replicas("worker", config.workers, config.worker_type, "workerType"),
            Replicas("ps", config.servers, config.server_type, "parameterServerType"),
            Replicas(
                "evaluator", config.evaluators, config.evaluator_type, "evaluatorType"
            ),
        ]
        return [each for each in kinds if each.number]

    def pod(self, replicas: Replicas) -> dict[str, Any]:
        """The `spec` of the pods of some tasks."""
        container: dict[str, Any] = {
            "name": CONTAINER,
            "image": self.image,
            "command": list(self.command),
        }
        if replicas.machine:
            # Two objects: YAML would show the second use of one as a reference.
            container["resources"] = {
                "requests": _quantities(replicas),
                "limits": _quantities(replicas),
            }
        pod: dict[str, Any] = {
            "terminationGracePeriodSeconds": int(self.grace_secs),
            "containers": [container],
        }
        if self.volume:
            claim, _, folder = self.volume.partition(":")
            container["volumeMounts"] = [{"name": _MODEL_VOLUME, "mountPath": folder}]
            source = {"persistentVolumeClaim": {"claimName": claim}}
            pod["volumes"] = [{"name": _MODEL_VOLUME, **source}]
        return pod


def _quantities(replicas: Replicas) -> dict[str, Any]:
    has = machine(replicas.machine, replicas.key)
    quantities: dict[str, Any] = {
        "cpu": str(has.cpus),
        "memory": f"{round(has.memory_gib * _MIB)}Mi",
    }
    if has.gpus:
        quantities["nvidia.com/gpu"] = has.gpus
    return quantities
