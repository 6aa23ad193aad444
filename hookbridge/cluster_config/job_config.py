"""Reads the `config.yaml` of an AI-Platform-style training job."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hookbridge import errors
from hookbridge.arguments import shown
from hookbridge.cluster_config import limited_yaml
from hookbridge.names import nearest

_TYPES = ("masterType", "workerType", "parameterServerType", "evaluatorType")
_COUNTS = ("workerCount", "parameterServerCount", "evaluatorCount")
# Known keys that are ignored: they describe the cloud, or how it starts the program.
_OTHERS = (
    *("runtimeVersion", "pythonVersion", "region", "jobDir", "packageUris"),
    *("pythonModule", "args", "labels", "scheduling", "network", "serviceAccount"),
)
_MOST = 1000
_TYPE = re.compile(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True)
class JobConfig:
    """The machines of a job."""

    master_type: str = ""
    worker_type: str = ""
    server_type: str = ""
    evaluator_type: str = ""
    workers: int = 0
    servers: int = 0
    evaluators: int = 0


def read_config(path: str) -> JobConfig:
    """Reads a `config.yaml`, whose keys may be below `trainingInput`."""
    return _job(path, limited_yaml.read(path))


def _job(path: str, value: Any) -> JobConfig:
    if isinstance(value, Mapping) and "trainingInput" in value:
        value = value["trainingInput"]
    if not isinstance(value, Mapping):
        raise errors.InvalidArgumentError(
            f"{path} holds {shown(value)}; expected keys such as `scaleTier: CUSTOM` "
            "and `masterType: n1-standard-4`."
        )
    keys = ("scaleTier", *_TYPES, *_COUNTS, *_OTHERS)
    for key in value:
        if key not in keys:
            near = ", ".join(f"`{n}`" for n in nearest(str(key), keys))
            raise errors.InvalidArgumentError(
                f"{path}: the key `{key}` is not known; the nearest: {near}."
            )
    tier = value.get("scaleTier", "CUSTOM")
    if tier != "CUSTOM":
        raise errors.InvalidArgumentError(
            f"{path}: `scaleTier` is {shown(tier)}; expected CUSTOM, with `masterType` "
            "and the number and type of the other machines."
        )
    counts = [_count(path, key, value.get(key, 0)) for key in _COUNTS]
    types = [value.get(key, "") for key in _TYPES]
    needed = (True, *(count > 0 for count in counts))
    for key, kind, is_needed in zip(_TYPES, types, needed, strict=True):
        if not isinstance(kind, str) or not _is_type(kind, is_needed):
            raise errors.InvalidArgumentError(
                f"{path}: `{key}` is {shown(kind or None)}; expected a machine type "
                "such as `n1-standard-4`."
            )
    if counts[0] and not counts[1]:
        raise errors.InvalidArgumentError(
            f"{path}: `workerCount` is {counts[0]} and `parameterServerCount` is 0; "
            "expected at least one: workers share their variables through parameter "
            "servers."
        )
    if counts[2] > 1:
        raise errors.InvalidArgumentError(
            f"{path}: `evaluatorCount` is {counts[2]}; expected 0 or 1: each evaluator "
            "evaluates every checkpoint."
        )
    return JobConfig(*types, *counts)


def _is_type(name: str, is_needed: bool) -> bool:
    """Whether a name can be that of a machine type."""
    return bool(_TYPE.fullmatch(name)) if name else not is_needed


def _count(path: str, key: str, value: Any) -> int:
    # AI Platform writes numbers as strings too.
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        value = int(value)
    good = isinstance(value, int) and not isinstance(value, bool)
    if not good or not 0 <= value <= _MOST:
        raise errors.InvalidArgumentError(
            f"{path}: `{key}` is {shown(value)}; expected an integer from 0 to {_MOST}."
        )
    return int(value)
