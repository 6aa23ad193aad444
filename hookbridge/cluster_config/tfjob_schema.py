"""The schema of a TFJob of `kubeflow.org/v1`, with the fields that hookbridge writes.

It has the rules of the custom resource definition and of the training operator: the
names of replicas, their least numbers, the name `tensorflow` of the container.
"""

from __future__ import annotations

from typing import Any


def _object(optional: tuple[str, ...] = (), **fields: Any) -> dict[str, Any]:
    """An object with these fields and no others, all but `optional` ones required."""
    return {
        "type": "object",
        "properties": fields,
        "required": [name for name in fields if name not in optional],
        "additionalProperties": False,
    }


def _list_of(item: Any, **limits: int) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": 1, **limits}


_GPUS = "nvidia.com/gpu"
_QUANTITIES = _object(
    optional=(_GPUS,),
    cpu={"type": "string", "pattern": "^[0-9]+$"},
    memory={"type": "string", "pattern": "^[0-9]+Mi$"},
    **{_GPUS: {"type": "integer", "minimum": 1}},
)
_CONTAINER = _object(
    optional=("resources",),
    name={"const": "tensorflow"},
    image={"type": "string", "minLength": 1},
    command=_list_of({"type": "string"}),
    resources=_object(
        optional=("requests", "limits"), requests=_QUANTITIES, limits=_QUANTITIES
    ),
)


def _replicas(**limits: int) -> dict[str, Any]:
    return _object(
        replicas={"type": "integer", "minimum": 1, **limits},
        restartPolicy={"enum": ["Always", "OnFailure", "Never", "ExitCode"]},
        template=_object(spec=_object(containers=_list_of(_CONTAINER, maxItems=1))),
    )


_NAME = {
    "type": "string",
    "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    "maxLength": 63,
}
SCHEMA: dict[str, Any] = _object(
    apiVersion={"const": "kubeflow.org/v1"},
    kind={"const": "TFJob"},
    metadata=_object(name=_NAME),
    spec=_object(
        optional=("runPolicy",),
        runPolicy=_object(
            optional=("cleanPodPolicy",),
            cleanPodPolicy={"enum": ["All", "Running", "None"]},
        ),
        tfReplicaSpecs=_object(
            optional=("Worker", "PS"),
            Chief=_replicas(maximum=1),
            Worker=_replicas(),
            PS=_replicas(),
        ),
    ),
)
