"""Estimators with a distribution strategy over several workers.

This module replaces the module of the same name under `tensorflow.python.distribute`,
which TensorFlow removed in 2.16. The package calls five functions of it. TensorFlow
still has the coordinator that does the work, `run_distribute_coordinator`.

A cluster without a strategy (`TF_CONFIG` with chief, workers, parameter servers
and an evaluator) does not use this module: `train_and_evaluate` handles it itself.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.ground import compat


def _modes() -> Any:
    return compat.private("distribute_coordinator").CoordinatorMode


def init_run_config(config: Any, tf_config: dict[str, Any]) -> None:
    """Complete a `RunConfig` that has a strategy."""
    experimental = config._experimental_distribute
    for role in ("train", "eval"):
        name = f"{role}_distribute"
        value = getattr(experimental, name, None)
        if not value:
            continue
        if getattr(config, f"_{name}"):
            raise ValueError(
                f"Received both `{name}` and `experimental_distribute.{name}`; "
                "set one of them."
            )
        setattr(config, f"_{name}", value)
    config._init_distributed_setting_from_environment_var({})
    cluster = tf.train.ClusterSpec(tf_config.get("cluster", {}))
    remote = getattr(experimental, "remote_cluster", None)
    if config._train_distribute and remote:
        if cluster:
            raise ValueError(
                "Received a cluster in `TF_CONFIG` and "
                "`experimental_distribute.remote_cluster`; set one of them."
            )
        config._distribute_coordinator_mode = _modes().STANDALONE_CLIENT
        config._cluster_spec = remote
    elif cluster and config._train_distribute and "master" not in cluster.jobs:
        # The coordinator decides the rest for each task.
        config._distribute_coordinator_mode = _modes().INDEPENDENT_WORKER
        config._cluster_spec = cluster
    else:
        config._distribute_coordinator_mode = None
        config._init_distributed_setting_from_environment_var(tf_config)
        config._maybe_overwrite_session_config_for_distributed_training()


def should_run_distribute_coordinator(config: Any) -> bool:
    """Return whether the coordinator runs `train_and_evaluate`."""
    mode = getattr(config, "_distribute_coordinator_mode", None)
    modes = (_modes().STANDALONE_CLIENT, _modes().INDEPENDENT_WORKER)
    return mode in modes and bool(config.cluster_spec)


def _as_task(estimator: Any, role: str, strategy: Any) -> tuple[Any, Any]:
    """Return a copy of `estimator` for the task of this thread."""
    from tensorflow_estimator.python.estimator import run_config

    task = compat.private("distribute_coordinator_context").get_current_worker_context()
    local = copy.deepcopy(estimator)
    setattr(local, f"_{role}_distribution", strategy)
    config = local._config
    setattr(config, f"_{role}_distribute", strategy)
    # Without this, `train` and `evaluate` of the copy would call this module again.
    config._distribute_coordinator_mode = None
    config._service = None
    config._task_type = task.task_type
    config._task_id = task.task_id
    config._is_chief = task.is_chief
    config._master = config._evaluation_master = task.master_target
    config._cluster_spec = cluster = task.cluster_spec
    # Only jobs that exist are counted.
    chief = "chief" if "chief" in cluster.jobs else "worker"
    counts = {job: len(hosts) for job, hosts in cluster.as_dict().items()}
    config._num_ps_replicas = counts.get("ps", 0)
    config._num_worker_replicas = (
        counts.get("worker", 0) + counts.get("chief", 0) if cluster else 1
    )
    config._global_id_in_cluster = 0
    if task.task_type == run_config.TaskType.EVALUATOR:
        # The evaluator works alone and must not wait for the others.
        config._cluster_spec = tf.train.ClusterSpec({})
        config._num_ps_replicas = config._num_worker_replicas = 0
        config._global_id_in_cluster = None
    elif cluster and task.task_type:
        config._global_id_in_cluster = run_config._get_global_id_in_cluster(
            cluster, task.task_type, task.task_id, chief
        )
    return local, task


def train_and_evaluate(
    estimator: Any, train_spec: Any, eval_spec: Any, executor_cls: Any
) -> None:
    """Run this process's task of a `train_and_evaluate` with a strategy."""
    config = estimator.config
    mode = getattr(config, "_distribute_coordinator_mode", None)
    if not mode:
        raise ValueError(
            "Received a `RunConfig` without a distribute coordinator mode; expected "
            "one with `train_distribute` and a cluster (in `TF_CONFIG`, or in "
            "`experimental_distribute.remote_cluster`)."
        )
    standalone = mode == _modes().STANDALONE_CLIENT

    def train(strategy: Any) -> None:
        local, task = _as_task(estimator, "train", strategy)
        # One client runs all tasks as threads: a user's hook fits one graph only.
        hooks = [] if standalone and not task.is_chief else list(train_spec.hooks)
        local.train(train_spec.input_fn, hooks=hooks, max_steps=train_spec.max_steps)

    def evaluate(strategy: Any) -> None:
        local, _ = _as_task(estimator, "eval", strategy)
        executor_cls(local, train_spec, eval_spec)._start_continuous_evaluation()

    compat.private("distribute_coordinator").run_distribute_coordinator(
        train,
        config.train_distribute,
        evaluate,
        config.eval_distribute,
        mode=mode,
        cluster_spec=config.cluster_spec if standalone else None,
        session_config=config.session_config,
    )


def _run_as_client(
    role: str,
    estimator: Any,
    function: Callable[[Any, Any, Sequence[Any]], Any],
    hooks: Sequence[Any],
) -> Any:
    """Run `Estimator.train` or `evaluate` in a client of a remote cluster."""
    config = estimator._config
    strategy = getattr(config, f"_{role}_distribute")
    cluster = compat.private("multi_worker_util").normalize_cluster_spec(
        config.cluster_spec
    )
    _refuse_unless_client(config, role, strategy, cluster)

    def run(strategy: Any) -> Any:
        local, task = _as_task(estimator, role, strategy)
        result = function(local, strategy, hooks if task.is_chief else [])
        return local if role == "train" else result

    return compat.private("distribute_coordinator").run_distribute_coordinator(
        run,
        strategy,
        mode=config._distribute_coordinator_mode,
        cluster_spec=cluster,
        session_config=config.session_config,
    )


# The package calls them as `(estimator, function, hooks)`.
estimator_train: Callable[..., Any] = functools.partial(_run_as_client, "train")
estimator_evaluate: Callable[..., Any] = functools.partial(_run_as_client, "eval")


def _refuse_unless_client(config: Any, role: str, strategy: Any, cluster: Any) -> None:
    """Refuse a single call in a cluster whose processes have to run a whole job."""
    method = {"train": "train", "eval": "evaluate"}[role]
    name = type(strategy).__name__
    if "evaluator" in cluster.jobs:
        reason = "the cluster has an evaluator, which takes part in evaluation only"
    elif config._distribute_coordinator_mode != _modes().STANDALONE_CLIENT:
        reason = "each process of this cluster runs one task of a whole job"
    elif strategy.extended.experimental_between_graph:
        reason = f"every worker builds its own graph under {name}"
    else:
        return
    raise errors.RefusedError(
        f"`Estimator.{method}` with {name} cannot run in this cluster: {reason}. "
        "Call `hb.estimator.train_and_evaluate` in every process instead.",
        see="estimator in a cluster",
    )
