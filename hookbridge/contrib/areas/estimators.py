"""`tf.contrib.estimator`: towers, heads, and functions that feed an Estimator.

Towers have the order of arguments of TensorFlow 1. The heads are
those of Estimator itself, whose losses are means here.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge.estimator import private, restored_package
from hookbridge.jobs.loops.towers import replicate_model_fn as towers


def TowerOptimizer(optimizer_or_optimizer_fn: object) -> Any:
    """`tf.contrib.estimator.TowerOptimizer`: the optimizer itself."""
    return towers.TowerOptimizer(optimizer_or_optimizer_fn)


def replicate_model_fn(
    model_fn: Any, loss_reduction: Any = None, devices: Any = None
) -> Any:
    """`tf.contrib.estimator.replicate_model_fn`."""
    if loss_reduction is None:
        loss_reduction = tf.compat.v1.losses.Reduction.SUM_BY_NONZERO_WEIGHTS
    return towers.replicate_model_fn(model_fn, devices, loss_reduction=loss_reduction)


_MEAN = "weighted_sum_over_batch_size"  # of `tf.losses.Reduction`


def _heads() -> Any:
    """Return the module of Estimator that makes heads."""
    return private.python().canned.head


def binary_classification_head(
    weight_column: object = None,
    thresholds: object = None,
    label_vocabulary: object = None,
    loss_reduction: str = _MEAN,
    loss_fn: object = None,
    name: str | None = None,
) -> Any:
    """`tf.contrib.estimator.binary_classification_head`."""
    return _heads()._binary_logistic_head_with_sigmoid_cross_entropy_loss(
        weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, name
    )


def multi_class_head(
    n_classes: int,
    weight_column: object = None,
    label_vocabulary: object = None,
    loss_reduction: str = _MEAN,
    loss_fn: object = None,
    name: str | None = None,
) -> Any:
    """`tf.contrib.estimator.multi_class_head`."""
    return _heads()._multi_class_head_with_softmax_cross_entropy_loss(
        n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name
    )


def regression_head(
    weight_column: object = None,
    label_dimension: int = 1,
    loss_reduction: str = _MEAN,
    loss_fn: object = None,
    inverse_link_fn: object = None,
    name: str | None = None,
) -> Any:
    """`tf.contrib.estimator.regression_head`."""
    return _heads()._regression_head(
        weight_column, label_dimension, loss_reduction, loss_fn, inverse_link_fn, name
    )


def poisson_regression_head(
    weight_column: object = None,
    label_dimension: int = 1,
    loss_reduction: str = _MEAN,
    compute_full_loss: bool = True,
    name: str | None = None,
) -> Any:
    """`tf.contrib.estimator.poisson_regression_head`."""

    def loss(labels: object, logits: object) -> Any:
        return tf.nn.log_poisson_loss(labels, logits, compute_full_loss)

    return regression_head(
        weight_column, label_dimension, loss_reduction, loss, tf.exp, name
    )


def logistic_regression_head(
    weight_column: object = None,
    loss_reduction: str = _MEAN,
    name: str | None = None,
) -> Any:
    """`tf.contrib.estimator.logistic_regression_head`."""

    def loss(labels: object, logits: object) -> Any:
        in_range = _heads()._assert_range(labels, 2, "Labels must be in range [0, 1]")
        return tf.nn.sigmoid_cross_entropy_with_logits(in_range, logits)

    return regression_head(weight_column, 1, loss_reduction, loss, tf.sigmoid, name)


def numpy_input_fn(
    x: object,
    y: object = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool = True,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Any:
    """`tf.contrib.learn.io.numpy_input_fn`, which shuffles unless told otherwise."""
    return restored_package.namespaces().v1.inputs.numpy_input_fn(
        x, y, batch_size, num_epochs, shuffle, queue_capacity, num_threads
    )


def pandas_input_fn(
    x: object,
    y: object = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool = True,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Any:
    """`tf.contrib.learn.io.pandas_input_fn`, which shuffles unless told otherwise."""
    return restored_package.namespaces().v1.inputs.pandas_input_fn(
        x,
        y,
        batch_size,
        num_epochs,
        shuffle,
        queue_capacity,
        num_threads,
        target_column,
    )
