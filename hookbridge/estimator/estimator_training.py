"""Estimators with a distribution strategy over several workers.

This module replaces the module of the same name under `tensorflow.python.distribute`,
which TensorFlow removed in 2.16. The package calls five functions of it. TensorFlow
still has the coordinator that does the work, `run_distribute_coordinator`.

A cluster without a strategy (`TF_CONFIG` with chief, workers, parameter servers
and an evaluator) does not use this module: `train_and_evaluate` handles it itself.
"""

from __future__ import annotations

import copy
from typing import Any

import tensorflow as tf

from hookbridge import compat, errors


def init_run_config(config: Any, tf_config: dict[str, Any]) -> None:
    """Completes a `RunConfig` that has a strategy."""
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
    if config._train_distribute and getattr(experimental, "remote_cluster", None):
        _refuse("A `RunConfig` with `experimental_distribute.remote_cluster`")
    cluster = tf.train.ClusterSpec(tf_config.get("cluster", {}))
    if cluster and config._train_distribute and "master" not in cluster.jobs:
        # The coordinator decides the rest for each task.
        modes = compat.private("distribute_coordinator").CoordinatorMode
        config._distribute_coordinator_mode = modes.INDEPENDENT_WORKER
        config._cluster_spec = cluster
    else:
        config._distribute_coordinator_mode = None
        config._init_distributed_setting_from_environment_var(tf_config)
        config._maybe_overwrite_session_config_for_distributed_training()


def should_run_distribute_coordinator(config: Any) -> bool:
    """Whether the coordinator runs `train_and_evaluate`."""
    mode = getattr(config, "_distribute_coordinator_mode", None)
    return mode is not None and bool(config.cluster_spec)


def _as_task(estimator: Any, role: str, strategy: Any) -> Any:
    """A copy of `estimator` for the task of this process."""
    from tensorflow_estimator.python.estimator import run_config

    context = compat.private("distribute_coordinator_context")
    task = context.get_current_worker_context()
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
    if task.task_type == run_config.TaskType.EVALUATOR:
        # The evaluator works alone and must not wait for the others.
        config._cluster_spec = tf.train.ClusterSpec({})
        config._num_ps_replicas = config._num_worker_replicas = 0
        config._global_id_in_cluster = None
        return local
    # Only jobs that exist are counted.
    chief = "chief" if "chief" in cluster.jobs else "worker"
    counts = {job: len(hosts) for job, hosts in cluster.as_dict().items()}
    config._num_ps_replicas = counts.get("ps", 0)
    config._num_worker_replicas = counts.get("worker", 0) + counts.get("chief", 0)
    config._global_id_in_cluster = 0
    if task.task_type:
        config._global_id_in_cluster = run_config._get_global_id_in_cluster(
            cluster, task.task_type, task.task_id, chief
        )
    return local


def train_and_evaluate(
    estimator: Any, train_spec: Any, eval_spec: Any, executor_cls: Any
) -> None:
    """Runs this process's task of a `train_and_evaluate` with a strategy."""

    def train(strategy: Any) -> None:
        local = _as_task(estimator, "train", strategy)
        hooks = list(train_spec.hooks)
        local.train(train_spec.input_fn, hooks=hooks, max_steps=train_spec.max_steps)

    def evaluate(strategy: Any) -> None:
        local = _as_task(estimator, "eval", strategy)
        executor_cls(local, train_spec, eval_spec)._start_continuous_evaluation()

    config = estimator.config
    compat.private("distribute_coordinator").run_distribute_coordinator(
        train,
        config.train_distribute,
        evaluate,
        config.eval_distribute,
        mode=config._distribute_coordinator_mode,
        session_config=config.session_config,
    )


def estimator_train(estimator: Any, *others: Any) -> None:
    """Refuses `Estimator.train` in one task of a cluster."""
    _refuse(f"`Estimator.train` with {_strategy(estimator, 'train')}")


def estimator_evaluate(estimator: Any, *others: Any) -> None:
    """Refuses `Estimator.evaluate` in one task of a cluster."""
    _refuse(f"`Estimator.evaluate` with {_strategy(estimator, 'eval')}")


def _strategy(estimator: Any, role: str) -> str:
    return type(getattr(estimator._config, f"_{role}_distribute")).__name__


def _refuse(what: str) -> None:
    raise errors.RefusedError(
        f"{what} cannot run: a cluster trains under a strategy as a whole, and each "
        "of its processes runs one task. Call `hb.estimator.train_and_evaluate` in "
        "every process instead, with the cluster in `TF_CONFIG`.",
        see="estimator in a cluster",
    )
