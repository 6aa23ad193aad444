"""A `train_and_evaluate` whose processes all end with the training."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from hookbridge.adapters.callback_to_hook import CallbackToHook
from hookbridge.ground.arguments import instance
from hookbridge.ground.processes import exit_codes
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.jobs.loops.clusters.session_cluster import SessionCluster
from hookbridge.jobs.loops.group_stop.evaluator import (
    JobEnd,
    checkpoints_until,
    ending_together,
    stop_from_outside,
)
from hookbridge.jobs.loops.group_stop.hook import GroupHook, StepEndHook
from hookbridge.jobs.loops.group_stop.member import GroupStop
from hookbridge.jobs.loops.group_stop.stop_requests import SOMEBODY
from hookbridge.jobs.loops.tasks.server import own_target
from hookbridge.jobs.loops.tasks.task_checks import check_jobs


def train_and_evaluate(estimator: Any, train_spec: object, eval_spec: object) -> Any:
    """Call `tf.estimator.train_and_evaluate`; one task's stop stops all tasks.

    Chief and workers run TensorFlow's own function with two more hooks. All of them
    stop when one of them stops (by a hook, a callback, the end of its data, `max_steps`
    or an error), or when a callback of the evaluator sets `stop_training`.
    (`request_stop` of the evaluator's hooks ends only its evaluation.) Then
    parameter servers return; the evaluator returns after it has evaluated the last
    checkpoint. Checkpoints have the same variables as with TensorFlow's function.

    If `TF_CONFIG` has no parameter server, TensorFlow's own function runs: for one task
    that trains, or with a strategy (`RunConfig(train_distribute=...)`).

    Args:
      estimator: an Estimator.
      train_spec: a `TrainSpec`.
      eval_spec: an `EvalSpec`; `start_delay_secs` and `throttle_secs` have no
        effect on the evaluator: it always evaluates the newest checkpoint.

    Returns:
      On the evaluator the metrics of the last evaluation and the results of the
      exporters; on other tasks the result of TensorFlow's own function.

    Raises:
      errors.InvalidArgumentError: `TF_CONFIG` is malformed, no task trains, or several
        tasks train without a parameter server or a strategy; or an argument is of
        another type.
      errors.ClusterError: a parameter server or the chief is gone.
      SystemExit: the job was preempted or another task has failed
        (`hookbridge.ground.processes.exit_codes`).
    """
    from hookbridge import estimator as estimator_lib

    # Estimators of version 1 and 2 have a base class that has no public name.
    base = estimator_lib.Estimator.__bases__[0]
    instance("estimator", estimator, base, "a `tf.estimator.Estimator`")
    spec = estimator_lib.TrainSpec
    instance("train_spec", train_spec, spec, "a `tf.estimator.TrainSpec`")
    spec = estimator_lib.EvalSpec
    instance("eval_spec", eval_spec, spec, "a `tf.estimator.EvalSpec`")
    exit_codes.use_for_errors()
    config = ClusterConfig.from_environment()
    if estimator.config.train_distribute is None:
        check_jobs(config)
    if "ps" not in config.cluster:
        return estimator_lib.train_and_evaluate(estimator, train_spec, eval_spec)
    if config.task_type == "evaluator":
        return _evaluate(estimator, train_spec, eval_spec, config)
    if config.task_type == "ps":
        with SessionCluster(config) as cluster:
            cluster.serve()
        return None
    return _train(estimator, train_spec, eval_spec, config)


def _train(estimator: Any, train_spec: Any, eval_spec: Any, config: Any) -> Any:
    """Train in a process that takes part in the stop of the job."""
    from hookbridge import estimator as estimator_lib

    group = GroupStop(config)
    model_dir = str(estimator.model_dir)
    stop = GroupHook(group, joins=True, leaves=False)
    hooks = [StepEndHook(group), *train_spec.hooks, stop]
    spec = train_spec._replace(hooks=tuple(hooks))
    target = own_target(config)
    leave = functools.partial(group.leave, target)
    with ending_together(group, model_dir, leave, target):
        return estimator_lib.train_and_evaluate(estimator, spec, eval_spec)
    return None


def _evaluate(estimator: Any, train_spec: Any, eval_spec: Any, config: Any) -> Any:
    """Evaluate and export each new checkpoint until the job is over."""
    metrics: Any = None
    exported: list[Any] = []
    model_dir = str(estimator.model_dir)
    end = JobEnd(model_dir, config)
    for path in checkpoints_until(end, model_dir):
        metrics = estimator.evaluate(
            eval_spec.input_fn,
            steps=eval_spec.steps,
            name=eval_spec.name,
            checkpoint_path=path,
            hooks=eval_spec.hooks,
        )
        asked = [
            hook.stop_reason or SOMEBODY
            for hook in eval_spec.hooks
            if isinstance(hook, CallbackToHook) and hook.asked_to_stop
        ]
        if asked:
            stop_from_outside(config, f"evaluator: {asked[0]}", end)
        step = metrics[tf.compat.v1.GraphKeys.GLOBAL_STEP]
        is_last = bool(train_spec.max_steps and step >= train_spec.max_steps)
        exported = [
            exporter.export(
                estimator=estimator,
                export_path=tf.io.gfile.join(model_dir, "export", exporter.name),
                checkpoint_path=path,
                eval_result=metrics,
                is_the_final_export=is_last,
            )
            for exporter in eval_spec.exporters
        ]
    return metrics, exported
