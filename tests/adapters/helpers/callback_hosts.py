"""The regression of `callback_loops` in an Estimator."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
from callback_loops import BATCH, BIAS, KERNEL, STEPS, X, Y
from estimator_models import KERAS2, estimators

import hookbridge as hb

v1: Any = tf.compat.v1
MODEL: list[Any] = []
Value = Callable[[str], Any]


def batches() -> Any:
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(BATCH).repeat()


def losses(features: Any, labels: Any) -> tuple[Any, Any]:
    """The loss and the mean error of a bare graph."""
    with v1.variable_scope("dense"):
        kernel = v1.get_variable("kernel", initializer=KERNEL)
        bias = v1.get_variable("bias", initializer=BIAS)
    return _losses(features @ kernel + bias, labels)


def _losses(outputs: Any, labels: Any) -> tuple[Any, Any]:
    mae = tf.reduce_mean(tf.abs(outputs - labels), name="mae")
    return tf.reduce_mean(tf.square(outputs - labels), name="loss"), mae


def _of_keras(features: Any, labels: Any) -> tuple[Any, Any]:
    keras = importlib.import_module(KERAS2)
    constant = keras.initializers.Constant
    options = {"kernel_initializer": constant(KERNEL), "name": "dense"}
    dense = keras.layers.Dense(1, bias_initializer=constant(BIAS), **options)
    MODEL[:] = [keras.Sequential([keras.layers.Input((2,)), dense])]
    return _losses(MODEL[0](features), labels)


def in_estimator(
    callbacks: Sequence[Any],
    folder: Path,
    *,
    epochs: int,
    data: Callable[[], Any] = batches,
    optimizer: Any = v1.train.GradientDescentOptimizer,
    max_steps: int | None = None,
    extra: Sequence[Any] = (),
    validation: Any = None,
    val_data: Callable[[], Any] | None = None,
    uses_keras: bool = False,
) -> Value:
    """`Estimator.train`; returns what reads variables of its last checkpoint."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss, mae = (_of_keras if uses_keras else losses)(features, labels)
        train_op = optimizer(0.1).minimize(loss, v1.train.get_global_step())
        metrics = {"mae": v1.metrics.mean(mae)}
        return estimators.EstimatorSpec(
            mode, loss=loss, train_op=train_op, eval_metric_ops=metrics
        )

    # A checkpoint at every step: none may lack what callbacks do in that step.
    config = estimators.RunConfig(
        str(folder), save_checkpoints_steps=1, save_summary_steps=None
    )
    estimator = estimators.Estimator(model_fn, config=config)
    if val_data is not None:
        validation = (estimator, estimators.EvalSpec(val_data, steps=None))
    hooks = hb.as_hooks(
        callbacks,
        steps_per_epoch=STEPS,
        epochs=epochs,
        logs={"mae": "mae:0"},
        model=(lambda: MODEL[0]) if uses_keras else None,
        validation=validation,
    )
    estimator.train(data, hooks=[*hooks, *extra], max_steps=max_steps)
    return estimator.get_variable_value  # type: ignore[no-any-return]
