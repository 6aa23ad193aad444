"""A graph made with the layers of Keras 3: a bare graph, and no `model=`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import X, Y

import hookbridge as hb
from hookbridge import errors


def test_layers_of_keras_3_in_the_graph(keras3: Any) -> None:
    keras = keras3  # for models of Keras 2 see test_callback_support
    weights: list[Any] = []

    class Weights(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            weights.append(self.model.get_weights())

    v1 = tf.compat.v1
    history = keras.callbacks.History()
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        model = keras.Sequential(
            [keras.layers.BatchNormalization(), keras.layers.Dense(1, name="out")]
        )
        error = model(tf.constant(X), training=True) - Y
        loss = tf.reduce_mean(tf.square(error), name="loss")
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        with pytest.raises(errors.RefusedError, match="BatchNormalization"):
            hb.as_hooks(history, steps_per_epoch=2, model=model)
        hooks = hb.as_hooks([history, Weights()], steps_per_epoch=2, epochs=2)
        moving = model.layers[0].moving_mean.value
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            while not session.should_stop():
                # Why `model=` is refused: no step moves the averages.
                averages = session.run(moving)
                np.testing.assert_array_equal(averages, np.zeros(2, "float32"))
                session.run(train_op)
    first, second = history.history["loss"]
    assert second < first
    assert not all(
        np.allclose(a, b) for a, b in zip(weights[0], weights[1], strict=True)
    )
