"""Which workers of a cluster call a callback."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Literal, get_args

from hookbridge import errors

Role = Literal["chief", "all"]
ROLES: tuple[Role, ...] = get_args(Role)

_KERAS = ("keras", "tf_keras")
# What writes files or talks to a server does so once.
_WRITERS = (
    "ModelCheckpoint",
    "BackupAndRestore",
    "CSVLogger",
    "TensorBoard",
    "RemoteMonitor",
    "ProgbarLogger",
    "SidecarEvaluatorModelExport",
)


def default_role(callback: Any) -> Role:
    """Where a callback runs unless told otherwise.

    Callbacks of Keras that write run on the chief, and so do those that say so with
    Keras's own `_chief_worker_only`; all others act on the loop and run on every
    worker.

    Args:
      callback: of any flavour.
    """
    for base in type(callback).__mro__:
        if base.__name__ in _WRITERS and base.__module__.partition(".")[0] in _KERAS:
            return "chief"
    return "chief" if getattr(callback, "_chief_worker_only", None) else "all"


def check_role(role: Any) -> Role:
    """The role, if it is one.

    Raises:
      errors.InvalidArgumentError: it is none.
    """
    for known in ROLES:
        if role == known:
            return known
    raise errors.InvalidArgumentError(
        f"`role` is {role!r}; expected one of {', '.join(map(repr, ROLES))}."
    )


def is_chief(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is the chief of its cluster, by `TF_CONFIG`.

    As in `tf.estimator.RunConfig`: the task `chief` or `master`; where there is
    neither, worker 0. Without a cluster the one process is the chief, and an
    evaluator writes its own files.

    Args:
      environment: where `TF_CONFIG` is looked up.

    Raises:
      errors.InvalidArgumentError: `TF_CONFIG` is not JSON.
    """
    text = environment.get("TF_CONFIG")
    if not text:
        return True
    try:
        config = json.loads(text)
        cluster = config.get("cluster") or {}
        task = config.get("task") or {}
        kind, index = task.get("type"), int(task.get("index", 0))
    except (ValueError, AttributeError, TypeError) as e:
        raise errors.InvalidArgumentError(
            f"The environment variable TF_CONFIG is {text!r}; expected JSON like "
            '{"cluster": {"worker": ["host:port"]}, "task": {"type": "worker", '
            f'"index": 0}}}}: {e}'
        ) from e
    if not cluster or kind in (None, "chief", "master", "evaluator"):
        return True
    return (
        kind == "worker"
        and index == 0
        and not any(name in cluster for name in ("chief", "master"))
    )
