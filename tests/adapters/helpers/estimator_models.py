"""Model functions without and with Keras, and data, for callbacks in Estimators."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import tensorflow as tf

# The real `tf.estimator` on TF 2.15, the same code revived on later ones.
estimators = importlib.import_module("hookbridge.estimator")
# The `tf.keras` of TF 2.15 is `keras`, even where tf_keras is installed too.
KERAS2 = "keras" if tf.__version__.startswith("2.15") else "tf_keras"
STEPS = 6
X = np.random.RandomState(0).randn(4 * STEPS, 2).astype("float32")
Y = (X @ np.array([[1.0], [2.0]], "float32")).astype("float32")


def train_input() -> Any:
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(4).repeat()


def eval_input() -> Any:
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(4)


def predict_input() -> Any:
    return tf.data.Dataset.from_tensor_slices(X).batch(4)


MODEL: dict[str, Any] = {}


def bare_model_fn(features: Any, labels: Any, mode: str) -> Any:
    with tf.compat.v1.variable_scope("dense"):
        kernel = tf.compat.v1.get_variable("kernel", [2, 1])
    return _spec(features @ kernel, labels, mode)


def keras_model_fn(features: Any, labels: Any, mode: str) -> Any:
    keras = importlib.import_module(KERAS2)
    model = keras.Sequential(
        [keras.layers.Dense(1, use_bias=False, input_shape=(2,), name="dense")]
    )
    MODEL["model"] = model
    return _spec(model(features), labels, mode)


def _spec(outputs: Any, labels: Any, mode: str) -> Any:
    v1 = tf.compat.v1
    if mode == estimators.ModeKeys.PREDICT:
        return estimators.EstimatorSpec(mode, predictions={"y": outputs})
    loss = tf.reduce_mean(tf.square(outputs - labels))
    metrics = {"mae": v1.metrics.mean_absolute_error(labels, outputs, name="mae")}
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(
        loss, global_step=v1.train.get_global_step()
    )
    return estimators.EstimatorSpec(
        mode, loss=loss, train_op=train_op, eval_metric_ops=metrics
    )
