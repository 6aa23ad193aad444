"""Takes this process's task in the cluster from the program's own `tf.train.Server`.

The roles of guests depend on `TF_CONFIG`. A program that builds its cluster from flags
does not set it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from hookbridge import errors
from hookbridge.ground import patching
from hookbridge.ground.processes.tf_config import ClusterConfig

VARIABLE = "TF_CONFIG"


@functools.cache
def follow() -> None:
    """Set `TF_CONFIG`, if it is not set, from the only server of this process.

    Sessions and stops of a group both ask for it; it happens once.
    """
    import tensorflow as tf

    variables_set: list[str] = []

    def followed(
        init: Callable[..., None], self: Any, /, *args: Any, **named: Any
    ) -> None:
        init(self, *args, **named)
        if variables_set:
            # Several servers: this process is a whole cluster and has no single task.
            if os.environ.get(VARIABLE) == variables_set[0]:
                del os.environ[VARIABLE]
        elif not os.environ.get(VARIABLE):
            variables_set.append(_place(self.server_def))
            if variables_set[0]:
                os.environ[VARIABLE] = variables_set[0]

    patching.wrap(tf.distribute.Server, __init__=followed)


def _place(server_def: Any) -> str:
    """Return the value of `TF_CONFIG`; empty if `ClusterConfig` refuses it."""
    jobs = {
        job.name: tuple(job.tasks[i] for i in sorted(job.tasks))
        for job in server_def.cluster.job
    }
    try:
        return ClusterConfig(jobs, server_def.job_name, server_def.task_index).to_json()
    except errors.InvalidArgumentError:
        return ""
