"""What experiment trackers read of the model and the optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import KERNEL, STEPS, X, Y, session_loop, until_stop
from callback_recorder import callback_of
from keras_graph import keras_graph_loop

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True

v1: Any = tf.compat.v1
train: Any = v1.train


def reader(keras: Any, read: Callable[[Any], Any], found: list[Any]) -> Any:
    """Calls `read(model)` at the end of each epoch."""
    return callback_of(
        keras, on_epoch_end=lambda self, epoch, logs: found.append(read(self.model))
    )


def _read(keras: Any, read: Callable[[Any], Any], **options: Any) -> Any:
    """What a callback reads from its model at the end of an epoch."""
    found: list[Any] = []
    session_loop([reader(keras, read, found)], epochs=1, **options)
    return found[0]


def describe(model: Any) -> Any:
    optimizer = model.optimizer
    assert type(optimizer).__name__ == optimizer.__class__.__name__
    assert optimizer.name == optimizer.get_config()["name"]
    return type(optimizer).__name__, optimizer.get_config()


ADAM = {"name": "Adam", "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}


def test_optimizer_is_that_of_the_graph(keras: Any) -> None:
    found = _read(keras, describe, optimizer=train.AdamOptimizer, rate=0.01)
    assert found == ("AdamOptimizer", {"learning_rate": 0.01, **ADAM})

    def momentum(rate: Any) -> Any:
        return train.MomentumOptimizer(rate, 0.95, name="mine")

    found = _read(keras, describe, optimizer=momentum, rate=0.01)
    config = {"learning_rate": 0.01, "name": "mine", "momentum": 0.95}
    assert found == ("MomentumOptimizer", config)


def test_a_hyperparameter_that_must_be_fed_is_named(keras: Any) -> None:
    def momentum(rate: Any) -> Any:
        x = v1.get_default_graph().get_tensor_by_name("x:0")
        return train.MomentumOptimizer(rate, 0.9 + 0 * tf.reduce_mean(x))

    def refused(model: Any) -> str:
        with pytest.raises(errors.LiveModelError) as caught:
            model.optimizer.get_config()
        return str(caught.value)

    error = _read(keras, refused, optimizer=momentum)
    assert "The hyperparameter `momentum`" in error and "rate" not in error


def test_optimizer_of_keras_in_the_graph(keras: Any, keras2: Any) -> None:
    found: list[Any] = []
    with tf.Graph().as_default():
        step = train.get_or_create_global_step()
        weight = v1.get_variable("w", initializer=KERNEL)
        loss = tf.reduce_sum(weight**2, name="loss")
        update = keras2.optimizers.legacy.Adam(0.01).get_updates(loss, [weight])
        with tf.control_dependencies(update):
            train_op = step.assign_add(1)
        guest = reader(keras, describe, found)
        until_stop(hb.as_hooks(guest, steps_per_epoch=1, epochs=1), train_op)
    name, config = found[0]
    assert name == config["name"] == "Adam"
    assert (config["learning_rate"], config["beta_1"]) == (0.01, 0.9)


class Both:
    """An optimizer for each variable."""

    def __init__(self, rate: float) -> None:
        self._wide = train.FtrlOptimizer(rate, name="wide")
        self._deep = train.AdagradOptimizer(0.5, name="deep")

    def minimize(self, loss: Any, global_step: Any) -> Any:
        kernel, bias = v1.trainable_variables()
        first = self._wide.minimize(loss, var_list=[kernel])
        with tf.control_dependencies([first]):
            return self._deep.minimize(loss, global_step, [bias])


def test_several_optimizers_are_read_by_name(
    keras: Any, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A callback that only logs the learning rate is not stopped."""

    def read(model: Any) -> Any:
        optimizer = model.optimizer
        with pytest.raises(errors.LiveModelError, match=r"2 learning rates.*wide"):
            optimizer.learning_rate = 0.3
        with pytest.raises(errors.LiveModelError, match="2 learning rates"):
            optimizer.lr.assign(0.3)
        one = {o.name: float(o.learning_rate) for o in optimizer.optimizers}
        found = float(optimizer.learning_rate), one, optimizer.get_config()
        model.optimizer.optimizers[0].learning_rate = 0.25
        now = [o.get_config()["learning_rate"] for o in optimizer.optimizers]
        return *found, now

    both, each, config, now = _read(keras, read, optimizer=Both)
    assert np.isnan(both)
    assert each == {"wide": pytest.approx(0.1), "deep": 0.5}
    assert config["deep"]["learning_rate"] == 0.5 and now == [0.25, 0.5]
    assert "2 learning rates" in caplog.text
    rate = "deep/learning_rate:0"
    _, named = _read(keras, describe, optimizer=Both, learning_rate=rate)
    assert (named["name"], named["learning_rate"]) == ("deep", 0.5)
    board = keras.callbacks.TensorBoard(str(tmp_path))
    assert session_loop([board], epochs=2, optimizer=Both).steps == 2 * STEPS


def test_clone_model_and_evaluate_with_data(keras2: Any) -> None:
    def refused(model: Any) -> Any:
        with pytest.raises((errors.LiveModelError, ValueError)) as caught:
            keras2.models.clone_model(model)
        return str(caught.value)

    assert "as_hooks(..., model=" in _read(keras2, refused)

    def read(model: Any) -> Any:
        clone = keras2.models.clone_model(model)
        assert isinstance(model, keras2.Model)
        assert [x.name for x in clone.layers] == ["features", "hidden", "norm", "out"]
        with pytest.raises(errors.LiveModelError, match=r"validation=.*compile"):
            model.evaluate(X, Y)
        model.compile(loss="mse")
        return model.evaluate(X, Y, verbose=0), model.predict(X)

    found: list[Any] = []
    keras_graph_loop(keras2, reader(keras2, read, found), epochs=1)
    ((loss, outputs),) = found
    assert loss == pytest.approx(float(np.mean((outputs - Y) ** 2)), rel=1e-5)
