"""`tf.contrib.estimator`: towers, with the order of arguments of TensorFlow 1."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge.jobs.loops.towers import replicate_model_fn as towers


def TowerOptimizer(optimizer_or_optimizer_fn: Any) -> Any:
    """`tf.contrib.estimator.TowerOptimizer`: the optimizer itself."""
    return towers.TowerOptimizer(optimizer_or_optimizer_fn)


def replicate_model_fn(
    model_fn: Any, loss_reduction: Any = None, devices: Any = None
) -> Any:
    """`tf.contrib.estimator.replicate_model_fn`."""
    if loss_reduction is None:
        loss_reduction = tf.compat.v1.losses.Reduction.SUM_BY_NONZERO_WEIGHTS
    return towers.replicate_model_fn(model_fn, devices, loss_reduction=loss_reduction)
