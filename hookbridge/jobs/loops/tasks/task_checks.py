"""Whether the tasks of a cluster can train together; clusters by the flags of TF1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hookbridge import errors
from hookbridge.ground.arguments import shown
from hookbridge.ground.processes.cluster_checks import (
    CHIEF_TYPES,
    TASK_TYPES,
    check_addresses,
)
from hookbridge.ground.processes.tf_config import ClusterConfig


def tasks_of(config: ClusterConfig, *jobs: str) -> list[tuple[str, int]]:
    """Return `(job, index)` of all tasks of some jobs.

    Args:
      config: the cluster.
      jobs: their names; one that the cluster does not have has no tasks.
    """
    return [
        (job, index)
        for job in jobs
        for index in range(len(config.cluster.get(job, ())))
    ]


def trainers(config: ClusterConfig) -> list[tuple[str, int]]:
    """Return `(job, index)` of the tasks that compute gradients, the chief first."""
    return tasks_of(config, *CHIEF_TYPES, "worker")


def check_jobs(config: ClusterConfig) -> None:
    """Raise unless some task trains, and the trainers can share their variables."""
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
    """Raise if `SessionCluster` cannot run in this cluster and task."""
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


_EXAMPLE = (
    "For example --ps_hosts=host0:2222 --worker_hosts=host1:2222,host2:2222 "
    "--job_name=worker --task_index=0."
)


def config_of(
    ps_hosts: str | Iterable[str] | None,
    worker_hosts: str | Iterable[str] | None,
    job_name: str | None,
    task_index: int | str | None,
) -> ClusterConfig:
    """Return the cluster that the flags describe; without hosts the job is local.

    Args:
      ps_hosts: the addresses of `--ps_hosts`, separated by commas or in a list.
      worker_hosts: those of `--worker_hosts`.
      job_name: "ps" or "worker".
      task_index: the number of this process in its job, from 0.

    Raises:
      errors.InvalidArgumentError: a list has what is not an address, or there is no
        such task.
    """
    lists = {"ps": _hosts(ps_hosts), "worker": _hosts(worker_hosts)}
    if not any(lists.values()) and not job_name:
        return ClusterConfig()
    cluster = check_addresses(lists, {job: f"--{job}_hosts" for job in lists}, _EXAMPLE)
    if job_name not in cluster:
        raise errors.InvalidArgumentError(
            f"Received --job_name={shown(job_name)}; expected 'ps' or 'worker'. "
            f"{_EXAMPLE}"
        )
    tasks = len(cluster[job_name])
    index = int(text) if (text := str(task_index)).isdecimal() else tasks
    if index >= tasks:
        raise errors.InvalidArgumentError(
            f"Received --task_index={shown(task_index)}; expected an integer from 0 to "
            f"{tasks - 1}, since --{job_name}_hosts has {tasks}. {_EXAMPLE}"
        )
    return ClusterConfig(cluster, job_name, index)


def _hosts(value: object) -> Any:
    """Return a flag's addresses: text with commas, as in TF1, or a list."""
    if isinstance(value, str):
        return [host.strip() for host in value.split(",")] if value.strip() else []
    return [] if value is None else value


def flags_of(config: ClusterConfig) -> list[str]:
    """Return the flags of one task; a chief becomes the first worker."""
    cluster = config.cluster
    if config.task_type not in cluster:
        raise errors.InvalidArgumentError(
            f"Received a task of the type {config.task_type!r}, for which TF1 programs "
            "have no flags; expected a chief, a worker or a parameter server."
        )
    chiefs = [host for job in CHIEF_TYPES for host in cluster.get(job, ())]
    workers = [*chiefs, *cluster.get("worker", ())]
    is_worker = config.task_type == "worker"
    return [
        f"--ps_hosts={','.join(cluster.get('ps', ()))}",
        f"--worker_hosts={','.join(workers)}",
        f"--job_name={'ps' if config.task_type == 'ps' else 'worker'}",
        f"--task_index={config.task_index + (len(chiefs) if is_worker else 0)}",
    ]
