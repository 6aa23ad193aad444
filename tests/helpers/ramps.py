"""One weight whose gradient is -1, trained in `fit` and in a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import hookbridge as hb

v1 = tf.compat.v1


def ramp_model(keras: Any) -> Any:
    """One weight whose gradient is -1: each step adds the learning rate to it."""
    model = keras.Sequential(
        [
            keras.Input([1]),
            keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros"),
        ]
    )
    model.compile(keras.optimizers.SGD(9.0), loss=lambda y_true, y_pred: -y_pred)
    return model


def fit_ramp(keras: Any, callbacks: list[Any], epochs: int = 2, **options: Any) -> Any:
    model = ramp_model(keras)
    ones = np.ones([6, 1], "float32")
    model.fit(
        *(ones, ones),
        batch_size=2,
        epochs=epochs,
        verbose=0,
        callbacks=hb.as_callbacks(callbacks),
        **options,
    )
    return model


def session_ramp(callbacks: list[Any], steps: int = 6, **options: Any) -> list[float]:
    """Trains the same weight in a session; returns its value after each step."""
    found: list[float] = []
    with tf.Graph().as_default():
        weight = v1.get_variable("weight", [], initializer=v1.zeros_initializer())
        step = v1.train.get_or_create_global_step()
        optimizer = v1.train.GradientDescentOptimizer(9.0)
        train_op = optimizer.minimize(tf.negative(weight, name="loss"), step)
        hooks = hb.as_hooks(
            callbacks, steps_per_epoch=3, logs={"loss": "loss:0"}, **options
        )
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            while not session.should_stop() and len(found) < steps:
                session.run(train_op)
                if not session.should_stop():
                    value = session.run_step_fn(
                        lambda step_context: step_context.session.run(weight)
                    )
                    found.append(float(value))
    return found


def served(path: Path, features: Any) -> Any:
    """The output of an exported model, which has one input and one output."""
    signature = tf.saved_model.load(str(path)).signatures["serving_default"]
    (name,) = signature.structured_input_signature[1]
    (output,) = signature(**{name: tf.constant(features)}).values()
    return output.numpy()
