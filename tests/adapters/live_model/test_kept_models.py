"""Callbacks keep parts of their model and use them in later batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import KERNEL, assert_same, begin, fit, session_loop
from keras_graph import keras_graph_loop

import hookbridge as hb
from hookbridge import compat, errors
from hookbridge.adapters.session_graph import variables as session_variables

v1 = tf.compat.v1


def _variable(weight: Any) -> Any:
    """The `tf.Variable` of a weight; Keras 3 has a class of its own around it."""
    return weight if isinstance(weight, tf.Variable) else weight.value


def _decay(kept: list[Any]) -> None:
    kept[0].assign(kept[0] * 0.99)


def _clip(kept: list[Any]) -> None:
    for variable in kept:
        variable.assign(tf.clip_by_value(variable, -1.0, 0.5))


def _product(kept: list[Any]) -> None:
    # An op of TensorFlow that is given the variable itself, not its value.
    kept[1].assign_add(tf.reshape(tf.matmul(kept[0], [[-0.1], [0.2]], True), [1]))


class _Compiled:
    """A function that is traced once and holds the variables."""

    def __init__(self) -> None:
        self._function: Any = None

    def __call__(self, kept: list[Any]) -> None:
        if self._function is None:

            @tf.function  # type: ignore[untyped-decorator]
            def function() -> None:
                kept[0].assign(kept[0] * 0.9)

            self._function = function
        self._function()


@pytest.mark.parametrize(
    "change",
    [lambda: _decay, lambda: _clip, lambda: _product, _Compiled],
    ids=["decay", "clip", "matmul", "compiled"],
)
def test_kept_variables_in_batches(
    keras: Any, change: Callable[[], Callable[[list[Any]], None]]
) -> None:
    """Read, changed and written in each batch: no training is undone."""

    class Keeps(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            self.kept = [_variable(w) for w in self.model.trainable_weights]
            self.change = change()

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.change(self.kept)

    assert_same(
        session_loop([Keeps()], validate=False, logs={"mae": "mae:0"}),
        fit(keras, [Keeps()], validate=False),
    )


def test_what_is_kept_has_the_value_of_the_end_after_the_run(keras: Any) -> None:
    kept: list[Any] = []

    class Keeps(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if not kept:
                kept.extend(self.model.trainable_weights)

    loop = session_loop([Keeps()], validate=False)
    np.testing.assert_array_equal(kept[0].numpy(), loop.weights[0])
    np.testing.assert_array_equal(kept[1].numpy(), loop.weights[1])


def test_one_event_that_sets_weights_in_two_ways(keras: Any) -> None:
    seen: list[Any] = []

    class Both(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            self.bias = self.model.trainable_weights[1]

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.bias.assign([3.0])
            kernel, bias = self.model.get_weights()
            seen.append(float(bias[0]))
            self.model.set_weights([kernel, bias + 1])
            seen.append(float(self.bias[0]))

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            seen.append(float(self.bias[0]))

    session_loop([Both()], validate=False, max_steps=2, rate=0.0)
    assert seen == pytest.approx([0.1, 3, 4, 4, 3, 4])


def test_kept_layer_and_submodel_of_a_keras_model(keras: Any, keras2: Any) -> None:
    features = np.ones([2, 2], "float32")
    layers: list[tuple[Any, Any]] = []
    outputs: list[tuple[Any, Any]] = []

    class Keeps(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            self.layer = self.model.get_layer("hidden")
            self.submodel = keras2.Model(self.model.inputs, self.layer.output)

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            weights = self.layer.get_weights()
            layers.append((weights[0], self.model.get_weights()[0]))
            expected = np.maximum(features @ weights[0] + weights[1], 0)
            outputs.append((self.layer(features).numpy(), expected))
            if batch != 1:  # a compiled function whose weights nobody asked for
                outputs.append((self.submodel.predict(features, verbose=0), expected))

    keras_graph_loop(keras2, [Keeps()])
    assert len(layers) == 6
    assert not np.array_equal(layers[0][0], layers[-1][0])
    for kept, present in layers:
        np.testing.assert_array_equal(kept, present)
    for computed, expected in outputs:
        np.testing.assert_allclose(computed, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["variable", "schedule"])
def test_kept_learning_rate(keras: Any, kind: str) -> None:
    read: list[float] = []

    def rate() -> Any:
        if kind == "variable":
            return v1.get_variable("lr", initializer=0.1, trainable=False)
        return v1.train.exponential_decay(
            0.1, v1.train.get_or_create_global_step(), 1, 0.5
        )

    class Keeps(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            self.rate = self.model.optimizer.learning_rate

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            read.append(float(self.rate.numpy()))
            if kind == "variable":
                self.rate.assign(self.rate * 0.5)

    session_loop([Keeps()], validate=False, rate=rate, epochs=1)
    # Under a schedule a variable of Keras 2 has the rate of the last step.
    of_next_step = kind == "schedule" and compat.is_keras3(keras)
    assert read == pytest.approx(
        [0.05, 0.025, 0.0125] if of_next_step else [0.1, 0.05, 0.025]
    )


def test_what_is_handed_out_and_not_used_is_not_read(
    keras: Any, keras2: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No event costs a run for weights that it does not use."""
    reads: list[int] = []
    read = session_variables.read

    def counted(session: Any, variables: Any) -> list[Any]:
        reads.append(len(variables))
        return read(session, variables)

    class Look(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            self.model.predict(np.ones([2, 2], "float32"))
            self.kept = self.model.weights
            self.rate = self.model.optimizer.learning_rate
            reads.clear()

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch == 1:
                self.kept[0].numpy()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            counts.append([n for n in reads if n])
            reads.clear()

    counts: list[list[int]] = []
    monkeypatch.setattr(session_variables, "read", counted)
    keras_graph_loop(keras2, [Look()], epochs=1)
    assert counts == [[1]]


def test_weights_that_the_loop_sets_between_events(keras: Any, keras2: Any) -> None:
    """The next run of the loop has them."""
    callback = keras.callbacks.Callback()
    with tf.Graph().as_default():
        model = keras2.Sequential([keras2.layers.Dense(1, input_shape=(2,))])
        loss = tf.reduce_sum(model(tf.ones([1, 2])))
        train_op = v1.train.GradientDescentOptimizer(1.0).minimize(
            loss, v1.train.get_or_create_global_step()
        )
        kernel = model.weights[0]
        hooks = hb.as_hooks(callback, steps_per_epoch=9, model=model)
        session = v1.train.MonitoredTrainingSession(hooks=hooks)
    with session:  # runs eagerly but for the session
        callback.model.layers[0].set_weights([KERNEL + 5, np.zeros(1)])
        session.run(train_op)
        np.testing.assert_array_equal(session.run(kernel), KERNEL + 4)
        callback.model.weights[0].assign(KERNEL)
        np.testing.assert_array_equal(session.run(kernel), KERNEL)


def test_weights_have_no_value_before_the_session(keras: Any) -> None:
    class Sets(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def set_model(self, model: Any) -> None:
            super().set_model(model)
            model.weights[0].assign_add(model.weights[0])
            model.weights[0].assign(KERNEL)

    with pytest.raises(errors.LiveModelError, match=r"`dense/kernel` before the sess"):
        begin(Sets())
