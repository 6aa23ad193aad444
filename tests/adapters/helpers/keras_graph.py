"""A session loop that trains a Keras 2 model built in its graph."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from callback_loops import STEPS, X, Y

import hookbridge as hb
from hookbridge.adapters.session_graph.ops import ancestors


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
        variables = list(model.weights)
        result: list[Any] = []

        class Last(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
            def end(self, session: Any) -> None:
                result.append(session.run(variables))
                result.append(session.run(predictions, {x: X}))

        with v1.train.MonitoredTrainingSession(hooks=[*hooks, Last()]) as session:
            n = 0
            while not session.should_stop():
                rows = slice(n % STEPS * 4, n % STEPS * 4 + 4)
                session.run(train_op, {x: X[rows], y: Y[rows]})
                n += 1
    return result[0], result[1]
