"""A session loop that trains a Keras 2 model built in its graph."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from callback_loops import STEPS, X, Y, until_stop

import hookbridge as hb
from hookbridge.adapters.session_graph.graph_ops import ancestors


def keras_graph_loop(
    keras2: Any,
    callbacks: Any,
    *,
    epochs: int = 2,
    make: Any = None,
    options: dict[str, Any] | None = None,
) -> tuple[list[Any], Any]:
    """Trains a Keras 2 model in a graph; returns its final weights and its outputs."""
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        y = v1.placeholder(tf.float32, [None, 1], name="y")
        layers = [
            keras2.layers.Dense(3, activation="relu", name="hidden"),
            keras2.layers.BatchNormalization(name="norm"),
            keras2.layers.Dense(1, name="out"),
        ]
        if make is not None:
            model = make(layers)
            model(x)
        else:
            inputs = outputs = keras2.layers.Input((2,), name="features")
            for layer in layers:
                outputs = layer(outputs)
            model = keras2.Model(inputs, outputs)
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y), name="loss")
        predictions = model(x, training=False)
        # Updates made by the call on the Keras input are left out: they need it fed.
        with tf.control_dependencies(
            [
                u
                for u in model.updates
                if make is not None or model.inputs[0].op not in ancestors([u])
            ]
        ):
            train_op = v1.train.AdamOptimizer(0.01).minimize(loss, global_step=step)
        hooks = hb.as_hooks(
            callbacks,
            steps_per_epoch=STEPS,
            epochs=epochs,
            model=model,
            **(options or {}),
        )
        last = v1.train.FinalOpsHook([model.weights, predictions], {x: X})

        def feed(step: int) -> dict[Any, Any]:
            rows = slice(step % STEPS * 4, step % STEPS * 4 + 4)
            return {x: X[rows], y: Y[rows]}

        until_stop([*hooks, last], train_op, feed)
    weights, outputs = last.final_ops_values
    return weights, outputs
