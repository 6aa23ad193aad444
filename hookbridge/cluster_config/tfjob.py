"""A Kubernetes TFJob manifest from a `config.yaml`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hookbridge import errors, extras
from hookbridge.cluster_config.job_config import JobConfig
from hookbridge.cluster_config.machines import machine
from hookbridge.cluster_config.tfjob_schema import SCHEMA

_MIB = 1024


def manifest(
    config: JobConfig, *, name: str, image: str, command: Sequence[str]
) -> dict[str, Any]:
    """The manifest, checked against the schema.

    The master is the replica `Chief`; the operator sets `TF_CONFIG` in each pod.
    Parameter servers are ended with the job.

    Args:
      config: the machines.
      name: the name of the job; it must be a valid name of Kubernetes.
      image: the container image that has the program.
      command: what each pod runs.

    Raises:
      errors.InvalidArgumentError: a machine type is not known, or the manifest would
        not fit the schema.
      errors.MissingExtraError: jsonschema is not installed.
    """
    tasks = {
        "Chief": (1, config.master_type, "masterType"),
        "Worker": (config.workers, config.worker_type, "workerType"),
        "PS": (config.servers, config.server_type, "parameterServerType"),
    }
    made = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name},
        "spec": {
            "runPolicy": {"cleanPodPolicy": "Running"},
            "tfReplicaSpecs": {
                replica: _replicas(number, _resources(kind, key), image, command)
                for replica, (number, kind, key) in tasks.items()
                if number
            },
        },
    }
    check(made)
    return made


def check(made: Mapping[str, Any]) -> None:
    """Raises unless a manifest fits the schema.

    Raises:
      errors.InvalidArgumentError: it does not fit; the message names the field.
      errors.MissingExtraError: jsonschema is not installed.
    """
    jsonschema = extras.load("jsonschema", "The check of a manifest")
    problems = jsonschema.Draft202012Validator(SCHEMA).iter_errors(made)
    for problem in problems:
        field = ".".join(map(str, problem.absolute_path)) or "the manifest"
        raise errors.InvalidArgumentError(f"TFJob: {field}: {problem.message}.")


def _resources(kind: str, key: str) -> dict[str, Any]:
    found = machine(kind, key)
    quantities: dict[str, Any] = {
        "cpu": str(found.cpus),
        "memory": f"{round(found.memory_gib * _MIB)}Mi",
    }
    if found.gpus:
        quantities["nvidia.com/gpu"] = found.gpus
    return quantities


def _replicas(
    number: int, resources: dict[str, Any], image: str, command: Sequence[str]
) -> dict[str, Any]:
    container = {
        "name": "tensorflow",
        "image": image,
        "command": list(command),
        # Copies: YAML would show the second use of an object as a reference.
        "resources": {"requests": dict(resources), "limits": dict(resources)},
    }
    return {
        "replicas": number,
        "restartPolicy": "OnFailure",
        "template": {"spec": {"containers": [container]}},
    }
