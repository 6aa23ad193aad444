"""The regression of `callback_loops` in an Estimator, without and with Keras."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
from callback_loops import BATCH, BIAS, KERNEL, STEPS, X, Y

import hookbridge as hb

# The real `tf.estimator` on TF 2.15, the same code restored on later ones.
estimators = importlib.import_module("hookbridge.estimator")
# The `tf.keras` of TF 2.15 is `keras`, even where tf_keras is installed too.
KERAS2 = "keras" if tf.__version__.startswith("2.15") else "tf_keras"
MODEL: list[Any] = []  # the Keras model of the last graph
v1: Any = tf.compat.v1


def eval_input() -> Any:
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(BATCH)


def train_input() -> Any:
    return eval_input().repeat()


def predict_input() -> Any:
    return tf.data.Dataset.from_tensor_slices(X).batch(BATCH)


def bare_outputs(features: Any) -> Any:
    with v1.variable_scope("dense"):
        kernel = v1.get_variable("kernel", initializer=KERNEL)
        bias = v1.get_variable("bias", initializer=BIAS)
    return features @ kernel + bias


def _keras_outputs(features: Any) -> Any:
    keras = importlib.import_module(KERAS2)
    constant = keras.initializers.Constant
    options = {"kernel_initializer": constant(KERNEL), "name": "dense"}
    dense = keras.layers.Dense(1, bias_initializer=constant(BIAS), **options)
    MODEL[:] = [keras.Sequential([keras.layers.Input((2,)), dense])]
    return MODEL[0](features)


def _spec(features: Any, labels: Any, mode: str, outputs: Callable[[Any], Any]) -> Any:
    found = outputs(features)
    if mode == estimators.ModeKeys.PREDICT:
        return estimators.EstimatorSpec(mode, predictions={"y": found})
    optimizer = v1.train.GradientDescentOptimizer(0.1)
    mae = tf.reduce_mean(tf.abs(found - labels), name="mae")
    loss = tf.reduce_mean(tf.square(found - labels), name="loss")
    return estimators.EstimatorSpec(
        mode,
        loss=loss,
        train_op=optimizer.minimize(loss, v1.train.get_global_step()),
        eval_metric_ops={"mae": v1.metrics.mean(mae)},
    )


bare_model_fn = functools.partial(_spec, outputs=bare_outputs)
keras_model_fn = functools.partial(_spec, outputs=_keras_outputs)


def in_estimator(
    callbacks: Sequence[Any],
    folder: Path,
    *,
    epochs: int,
    max_steps: int | None = None,
    extra: Sequence[Any] = (),
    validation: Any = None,
    val_data: Callable[[], Any] | None = None,
    uses_keras: bool = False,
) -> Callable[[str], Any]:
    """`Estimator.train`; returns what reads variables of its last checkpoint."""
    # A checkpoint at every step: none may lack what callbacks do in that step.
    config = estimators.RunConfig(
        str(folder), save_checkpoints_steps=1, save_summary_steps=None
    )
    model_fn = keras_model_fn if uses_keras else bare_model_fn
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
    estimator.train(train_input, hooks=[*hooks, *extra], max_steps=max_steps)
    return estimator.get_variable_value  # type: ignore[no-any-return]
