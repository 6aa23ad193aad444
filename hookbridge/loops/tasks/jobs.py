"""Whether the tasks of a cluster can train together."""

from __future__ import annotations

from hookbridge import errors
from hookbridge.cluster import ClusterConfig
from hookbridge.cluster_checks import CHIEF_TYPES, TASK_TYPES


def trainers(config: ClusterConfig) -> list[tuple[str, int]]:
    """`(job, index)` of the tasks that compute gradients, the chief first."""
    return [
        (job, index)
        for job in (*CHIEF_TYPES, "worker")
        for index in range(len(config.cluster.get(job, ())))
    ]


def check_jobs(config: ClusterConfig) -> None:
    """Raises unless some task trains, and the trainers can share their variables."""
    jobs = config.cluster
    if not jobs:
        return
    if not trainers(config):
        raise errors.InvalidArgumentError(
            f"TF_CONFIG['cluster'] has the jobs {', '.join(jobs)}; expected also "
            "'chief' or 'worker': nobody trains."
        )
    if "ps" not in jobs and len(trainers(config)) > 1:
        raise _no_server(config)


def check_roles(config: ClusterConfig) -> None:
    """Raises if `SessionCluster` cannot run in this cluster and task."""
    jobs = config.cluster
    if not jobs:
        return
    if "ps" not in jobs:
        raise _no_server(config)
    check_jobs(config)
    if config.task_type not in jobs or config.task_type == "evaluator":
        trained = ", ".join(job for job in TASK_TYPES if job in jobs)
        raise errors.InvalidArgumentError(
            f"TF_CONFIG['task']['type'] is {config.task_type!r}; expected one of "
            f"{trained}. An evaluator reads checkpoints: see "
            "`hb.loops.checkpoints_until_stop`."
        )


def _no_server(config: ClusterConfig) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(
        f"TF_CONFIG['cluster'] has the jobs {', '.join(config.cluster)}; expected also "
        "'ps': the workers share their variables through parameter servers. Add one, "
        "or leave TF_CONFIG out to train in one process."
    )
