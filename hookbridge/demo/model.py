"""The same small network for both loops, from the same initial weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge.demo.data import CLASSES, PIXELS
from hookbridge.loops import TowerSpec

HIDDEN_UNITS = 64
# Keras's default. TF1's default is 1e-8, with which the loops would differ.
ADAM_EPSILON = 1e-7


def initial_weights(seed: int) -> dict[str, Any]:
    """Glorot-uniform kernels and zero biases, `{name: array}`."""
    rng = np.random.default_rng(seed)
    sizes = {"hidden": (PIXELS, HIDDEN_UNITS), "logits": (HIDDEN_UNITS, CLASSES)}
    weights: dict[str, Any] = {}
    for layer, (inputs, outputs) in sizes.items():
        limit = np.sqrt(6 / (inputs + outputs))
        kernel = rng.uniform(-limit, limit, (inputs, outputs))
        weights[f"{layer}/kernel"] = kernel.astype(np.float32)
        weights[f"{layer}/bias"] = np.zeros(outputs, np.float32)
    return weights


def make_model_fn(weights: Mapping[str, Any]) -> Any:
    """The network as a TF1 model function for `TowerLoop`."""
    v1 = tf.compat.v1

    def dense(x: Any, layer: str) -> Any:
        kernel, bias = (
            v1.get_variable(part, initializer=tf.constant(weights[f"{layer}/{part}"]))
            for part in ("kernel", "bias")
        )
        return tf.nn.bias_add(tf.matmul(x, kernel), bias)

    def model_fn(features: Any, labels: Any, mode: str) -> TowerSpec:
        with v1.variable_scope("hidden"):
            hidden = tf.nn.relu(dense(features, "hidden"), name="Relu")
        with v1.variable_scope("logits"):
            logits = dense(hidden, "logits")
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=logits
        )
        hits = tf.cast(tf.equal(tf.argmax(logits, axis=1), labels), tf.float32)
        return TowerSpec(
            loss=tf.reduce_mean(losses),
            metrics={"accuracy": tf.reduce_mean(hits)},
            predictions=logits,
        )

    return model_fn


def make_session_optimizer(learning_rate: Any) -> Any:
    """Adam for the session loop."""
    return tf.compat.v1.train.AdamOptimizer(learning_rate, epsilon=ADAM_EPSILON)


def make_keras_model(
    weights: Mapping[str, Any], learning_rate: float, keras: Any = tf.keras
) -> Any:
    """The network as a compiled model of `tf.keras` or another Keras."""
    model = keras.Sequential(
        [
            keras.Input(shape=(PIXELS,)),
            keras.layers.Dense(HIDDEN_UNITS, activation="relu", name="hidden"),
            keras.layers.Dense(CLASSES, name="logits"),
        ]
    )
    model.set_weights(list(weights.values()))
    model.compile(
        optimizer=keras.optimizers.Adam(learning_rate, epsilon=ADAM_EPSILON),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model
