"""Parts of their model that callbacks keep, and eager models that they hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import KERNEL, assert_same, begin, fit, session_loop, until_stop
from callback_recorder import callback_of
from keras_graph import keras_graph_loop

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True

v1 = tf.compat.v1


def _variable(weight: Any) -> Any:
    """The `tf.Variable` of a weight; Keras 3 has a class of its own around it."""
    return weight if isinstance(weight, tf.Variable) else weight.value


def test_kept_variables_in_batches(keras: Any) -> None:
    """Read, changed and written in each batch: no training is undone."""

    def keeps(change: Callable[[Any, Any], Any]) -> Any:
        def keep(self: Any, logs: Any) -> None:
            self.kept = [_variable(w) for w in self.model.trainable_weights]

        return callback_of(
            keras,
            on_train_begin=keep,
            on_train_batch_end=lambda self, batch, logs: change(*self.kept),
        )

    def clip(*kept: Any) -> None:
        for variable in kept:
            variable.assign(tf.clip_by_value(variable, -1.0, 0.5))

    def product(kernel: Any, bias: Any) -> None:
        # An op of TensorFlow that is given the variable itself, not its value.
        bias.assign_add(tf.reshape(tf.matmul(kernel, [[-0.1], [0.2]], True), [1]))

    def guests() -> list[Any]:
        # A function that is traced once and holds the variables.
        compiled = tf.function(lambda kernel, bias: kernel.assign(kernel * 0.9))
        decay = lambda kernel, bias: kernel.assign(kernel * 0.99)  # noqa: E731
        return [keeps(each) for each in (decay, clip, product, compiled)]

    assert_same(
        session_loop(guests(), validate=False, logs={"mae": "mae:0"}),
        fit(keras, guests(), validate=False),
    )


def test_one_event_that_sets_weights_in_two_ways(keras: Any) -> None:
    seen: list[Any] = []

    def keep(self: Any, logs: Any) -> None:
        self.bias = self.model.trainable_weights[1]

    def set_both(self: Any, batch: int, logs: Any) -> None:
        self.bias.assign([3.0])
        kernel, bias = self.model.get_weights()
        seen.append(float(bias[0]))
        self.model.set_weights([kernel, bias + 1])
        seen.append(float(self.bias[0]))

    both = callback_of(
        keras,
        on_train_begin=keep,
        on_train_batch_begin=lambda self, batch, logs: seen.append(float(self.bias[0])),
        on_train_batch_end=set_both,
    )
    session_loop([both], validate=False, max_steps=2, rate=0.0)
    assert seen == pytest.approx([0.1, 3, 4, 4, 3, 4])


def test_kept_layer_and_submodel_of_a_keras_model(keras: Any, keras2: Any) -> None:
    features = np.ones([2, 2], "float32")
    layers: list[tuple[Any, Any]] = []
    outputs: list[tuple[Any, Any]] = []

    def keep(self: Any, logs: Any) -> None:
        self.layer = self.model.get_layer("hidden")
        self.submodel = keras2.Model(self.model.inputs, self.layer.output)
        self.model.predict(features)  # compiles the clone
        self.predict = self.model.predict_on_batch

    def use(self: Any, batch: int, logs: Any) -> None:
        weights = self.layer.get_weights()
        layers.append((weights[0], self.model.get_weights()[0]))
        expected = np.maximum(features @ weights[0] + weights[1], 0)
        outputs.append((self.layer(features).numpy(), expected))
        outputs.append((self.predict(features), self.model(features).numpy()))
        if batch != 1:  # a compiled function whose weights nobody asked for
            outputs.append((self.submodel.predict(features, verbose=0), expected))

    guest = callback_of(keras, on_train_begin=keep, on_train_batch_end=use)
    keras_graph_loop(keras2, [guest])
    assert len(layers) == 6
    assert not np.array_equal(layers[0][0], layers[-1][0])
    for kept, present in layers:
        np.testing.assert_array_equal(kept, present)
    for computed, expected in outputs:
        np.testing.assert_allclose(computed, expected, rtol=1e-5, atol=1e-6)


def test_weights_have_no_value_before_the_session(keras: Any) -> None:
    def set_model(self: Any, model: Any) -> None:
        model.weights[0].assign_add(model.weights[0])
        model.weights[0].assign(KERNEL)

    with pytest.raises(errors.LiveModelError, match=r"`dense/kernel` before the sess"):
        begin(callback_of(keras, set_model=set_model))


def test_layers_of_keras_3_in_the_graph(keras3: Any) -> None:
    """A bare graph, and no `model=`."""
    layers, weights = keras3.layers, []

    def note(self: Any, epoch: int, logs: Any) -> None:
        weights.append(self.model.get_weights()[0])

    history = keras3.callbacks.History()
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        model = keras3.Sequential([layers.BatchNormalization(), layers.Dense(1)])
        error = model(tf.random.uniform([12, 2], seed=1), training=True) - 1.0
        loss = tf.reduce_mean(tf.square(error), name="loss")
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        with pytest.raises(errors.RefusedError, match="BatchNormalization"):
            hb.as_hooks(history, steps_per_epoch=2, model=model)
        guests = [history, callback_of(keras3, on_epoch_end=note)]
        hooks = hb.as_hooks(guests, steps_per_epoch=2, epochs=2)
        moving = model.layers[0].moving_mean.value
        # Why `model=` is refused: no step moves the averages.
        end = v1.train.FinalOpsHook(moving)
        until_stop([*hooks, end], train_op)
    assert not np.any(end.final_ops_values)
    assert history.history["loss"][1] < history.history["loss"][0]
    assert not np.allclose(weights[0], weights[1])


WARNING = "has not changed up to step"


def _own_model(keras: Any) -> Any:
    layers = [keras.layers.Input((2,)), keras.layers.Dense(1, name="dense")]
    return keras.Sequential(layers)


def _holding(keras: Any, held: Any, **events: Any) -> Any:
    guest = callback_of(keras, **events)
    guest.held = held
    return guest


def test_untrained(
    subtests: pytest.Subtests,
    keras: Any,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    own, saved = _own_model(keras), tf.train.Checkpoint(model=_own_model(keras))
    closure = tf.train.Checkpoint(model=_own_model(keras))
    for guest in (
        _holding(keras, own),
        _holding(keras, tf.train.CheckpointManager(saved, str(tmp_path), 3)),
        keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: closure.save(str(tmp_path / "own"))
        ),
    ):
        with subtests.test(str(guest)):
            caplog.clear()
            session_loop([guest], epochs=2)
            assert caplog.text.count(WARNING) == 1
            assert f"`{type(guest).__name__}` holds the eager variable" in caplog.text


def test_what_follows_the_session_or_is_no_model_is_not_told_of(
    keras: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def keep(self: Any, logs: Any) -> None:
        self.checkpoint = tf.train.Checkpoint(model=self.model)
        self.kept = [*self.model.weights, self.model.optimizer.iterations]

    def follow(self: Any, epoch: int, logs: Any) -> None:
        self.held.set_weights(self.model.get_weights())

    def count(self: Any, epoch: int, logs: Any) -> None:
        epochs.assign_add(1)

    epochs = tf.Variable(0, name="epochs")
    counted = [epochs, tf.train.Checkpoint(epochs=epochs)]
    guests = [
        callback_of(keras, on_train_begin=keep),
        _holding(keras, _own_model(keras), on_epoch_end=follow),
        # A checkpoint of what the callback counts itself is right.
        _holding(keras, counted, on_epoch_end=count),
        _holding(keras, tf.Variable(1.0, name="threshold")),
        keras.callbacks.EarlyStopping("loss", restore_best_weights=True),
    ]
    session_loop(guests, epochs=2)
    assert WARNING not in caplog.text
