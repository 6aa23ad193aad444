"""Trains the Estimator that is made of a user's functions."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import hookbridge as hb
from hookbridge.cli.estimator_cluster import check_before_servers
from hookbridge.cluster import ClusterConfig
from hookbridge.loops.towers.devices import session_config, tower_devices
from hookbridge.training.user_file import find_function, find_guests


def run(job: ModuleType, values: Any, cluster: ClusterConfig) -> None:
    """Trains in this process's role; prints the metrics of the last evaluation.

    Args:
      job: the user's file: `model_fn(features, labels, mode[, params][, config])`,
        `train_input_fn()`, and optionally `eval_input_fn()`, `params` and `guests`.
      values: the command's flags.
      cluster: this process's place; with a cluster every role of
        `train_and_evaluate` is played as `TF_CONFIG` says.

    Raises:
      errors.InvalidArgumentError: the file lacks a function, or the batch does not
        divide among the towers.
      errors.HookBridgeError: a guest was refused; see `as_hooks`.
    """
    model_fn = find_function(
        job,
        "model_fn",
        "(features, labels, mode)",
        ("features", "labels", "mode", "params", "config"),
    )
    train_input_fn = find_function(job, "train_input_fn", "()")
    eval_input_fn = None
    if hasattr(job, "eval_input_fn"):
        eval_input_fn = find_function(job, "eval_input_fn", "()")
    guests = find_guests(job) if hasattr(job, "guests") else []

    devices = tower_devices(values.num_towers, values.devices)
    check_before_servers(train_input_fn, len(devices), cluster)
    estimator = hb.estimator.Estimator(
        hb.replicate_model_fn(model_fn, devices),
        values.model_dir,
        hb.estimator.RunConfig(
            tf_random_seed=values.seed, session_config=session_config(devices)
        ),
        params=getattr(job, "params", None),
    )
    evaluation = None
    if eval_input_fn is not None:
        evaluation = hb.estimator.EvalSpec(
            eval_input_fn, steps=None, start_delay_secs=0, throttle_secs=0
        )
    hooks = hb.as_hooks(
        guests,
        steps_per_epoch=values.steps_per_epoch,
        epochs=values.epochs,
        # In a cluster the evaluator has a process of its own.
        validation=None
        if cluster.cluster or not evaluation
        else (estimator, evaluation),
    )
    last_step = _last_step(values)
    if cluster.cluster:
        hb.loops.train_and_evaluate(
            estimator,
            hb.estimator.TrainSpec(train_input_fn, max_steps=last_step, hooks=hooks),
            evaluation or hb.estimator.EvalSpec(train_input_fn, steps=1),
        )
    else:
        estimator.train(train_input_fn, hooks=hooks, max_steps=last_step)
    # `train_and_evaluate` does not return the metrics of the evaluator.
    evaluates = not cluster.cluster or cluster.task_type == "evaluator"
    if evaluates and evaluation is not None:
        _print_metrics(estimator.evaluate(eval_input_fn))


def _last_step(values: Any) -> int | None:
    """The global step at which the training ends; the evaluator needs it too."""
    if not values.epochs:
        return values.max_steps  # type: ignore[no-any-return]  # a flag
    steps = int(values.epochs * values.steps_per_epoch)
    return min(steps, values.max_steps or steps)


def _print_metrics(metrics: Any) -> None:
    print(" ".join(f"{name}={value:.6g}" for name, value in sorted(metrics.items())))
