"""The schema of a TFJob of `kubeflow.org/v1`, as far as this writes one.

It says what the custom resource definition and the training operator ask for: names of
replicas, their least numbers, the name `tensorflow` of the container.
"""

from __future__ import annotations

from typing import Any

_NAME = {
    "type": "string",
    "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    "maxLength": 63,
}
_QUANTITIES = {
    "type": "object",
    "properties": {
        "cpu": {"type": "string", "pattern": "^[0-9]+$"},
        "memory": {"type": "string", "pattern": "^[0-9]+Mi$"},
        "nvidia.com/gpu": {"type": "integer", "minimum": 1},
    },
    "required": ["cpu", "memory"],
    "additionalProperties": False,
}
_CONTAINER = {
    "type": "object",
    "properties": {
        "name": {"const": "tensorflow"},
        "image": {"type": "string", "minLength": 1},
        "command": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "resources": {
            "type": "object",
            "properties": {"requests": _QUANTITIES, "limits": _QUANTITIES},
            "additionalProperties": False,
        },
    },
    "required": ["name", "image", "command"],
    "additionalProperties": False,
}


def _replicas(most: int | None) -> dict[str, Any]:
    number: dict[str, Any] = {"type": "integer", "minimum": 1}
    if most is not None:
        number["maximum"] = most
    pod = {
        "type": "object",
        "properties": {
            "containers": {
                "type": "array",
                "items": _CONTAINER,
                "minItems": 1,
                "maxItems": 1,
            }
        },
        "required": ["containers"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "replicas": number,
            "restartPolicy": {"enum": ["Always", "OnFailure", "Never", "ExitCode"]},
            "template": {
                "type": "object",
                "properties": {"spec": pod},
                "required": ["spec"],
                "additionalProperties": False,
            },
        },
        "required": ["replicas", "restartPolicy", "template"],
        "additionalProperties": False,
    }


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "apiVersion": {"const": "kubeflow.org/v1"},
        "kind": {"const": "TFJob"},
        "metadata": {
            "type": "object",
            "properties": {"name": _NAME},
            "required": ["name"],
            "additionalProperties": False,
        },
        "spec": {
            "type": "object",
            "properties": {
                "runPolicy": {
                    "type": "object",
                    "properties": {
                        "cleanPodPolicy": {"enum": ["All", "Running", "None"]}
                    },
                    "additionalProperties": False,
                },
                "tfReplicaSpecs": {
                    "type": "object",
                    "properties": {
                        "Chief": _replicas(1),
                        "Worker": _replicas(None),
                        "PS": _replicas(None),
                    },
                    "required": ["Chief"],
                    "additionalProperties": False,
                },
            },
            "required": ["tfReplicaSpecs"],
            "additionalProperties": False,
        },
    },
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
}
