"""What experiment trackers read of the model and the optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import KERNEL, STEPS, X, Y, session_loop
from keras_graph import keras_graph_loop

import hookbridge as hb
from hookbridge import errors

train = tf.compat.v1.train


def _read(keras: Any, read: Callable[[Any], Any], **options: Any) -> Any:
    """What a callback reads from its model at the end of an epoch."""
    found: list[Any] = []

    class Reader(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            found.append(read(self.model))

    session_loop([Reader()], epochs=1, **options)
    return found[0]


def _in_keras_graph(keras2: Any, read: Callable[[Any], Any]) -> Any:
    found: list[Any] = []

    class Reader(keras2.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            found.append(read(self.model))

    keras_graph_loop(keras2, Reader(), epochs=1)
    return found[0]


@pytest.mark.parametrize(
    ("make", "name", "config"),
    [
        (
            train.AdamOptimizer,
            "AdamOptimizer",
            {"name": "Adam", "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
        ),
        (
            lambda rate: train.MomentumOptimizer(rate, 0.95, name="mine"),
            "MomentumOptimizer",
            {"name": "mine", "momentum": 0.95},
        ),
        (
            train.GradientDescentOptimizer,
            "GradientDescentOptimizer",
            {"name": "GradientDescent"},
        ),
    ],
)
def test_optimizer_is_that_of_the_graph(
    keras: Any, make: Any, name: str, config: dict[str, Any]
) -> None:
    def read(model: Any) -> Any:
        optimizer = model.optimizer
        return (
            type(optimizer).__name__,
            optimizer.__class__.__name__,
            optimizer.name,
            (optimizer.get_config()),
        )

    found = _read(keras, read, optimizer=make, rate=0.01)
    expected = {"learning_rate": 0.01, **config}
    assert found == (name, name, config["name"], expected)


def test_optimizer_of_keras_in_the_graph(keras: Any, keras2: Any) -> None:
    found: list[Any] = []

    class Reader(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            optimizer = self.model.optimizer
            found.append((type(optimizer).__name__, optimizer.get_config()))

    v1 = tf.compat.v1
    with tf.Graph().as_default():
        step = train.get_or_create_global_step()
        weight = v1.get_variable("w", initializer=KERNEL)
        loss = tf.reduce_sum(weight**2, name="loss")
        optimizer = keras2.optimizers.legacy.Adam(0.01)
        update = optimizer.get_updates(loss, [weight])
        with tf.control_dependencies(update):
            train_op = step.assign_add(1)
        hooks = hb.as_hooks(Reader(), steps_per_epoch=1, epochs=1)
        with train.MonitoredTrainingSession(hooks=hooks) as session:
            while not session.should_stop():
                session.run(train_op)
    name, config = found[0]
    assert name == "Adam"
    assert config["name"] == "Adam"
    assert (config["learning_rate"], config["beta_1"]) == (0.01, 0.9)


def test_several_optimizers_are_read_by_name(
    keras: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A callback that only logs the learning rate is not stopped."""

    class Both:
        def __init__(self, rate: float) -> None:
            self._wide = train.FtrlOptimizer(rate, name="wide")
            self._deep = train.AdagradOptimizer(0.5, name="deep")

        def minimize(self, loss: Any, global_step: Any) -> Any:
            kernel, bias = tf.compat.v1.trainable_variables()
            first = self._wide.minimize(loss, var_list=[kernel])
            with tf.control_dependencies([first]):
                return self._deep.minimize(loss, global_step, [bias])

    def read(model: Any) -> Any:
        optimizer = model.optimizer
        with pytest.raises(errors.LiveModelError, match=r"2 learning rates.*wide"):
            optimizer.learning_rate = 0.3
        with pytest.raises(errors.LiveModelError, match="2 learning rates"):
            optimizer.lr.assign(0.3)
        one = {o.name: float(o.learning_rate) for o in optimizer.optimizers}
        return float(optimizer.learning_rate), one, optimizer.get_config()

    both, each, config = _read(keras, read, optimizer=Both)
    assert np.isnan(both)
    assert each == {"wide": pytest.approx(0.1), "deep": 0.5}
    assert config["deep"]["learning_rate"] == 0.5
    assert "2 learning rates" in caplog.text

    def set_one(model: Any) -> Any:
        model.optimizer.optimizers[0].learning_rate = 0.25
        return [o.get_config()["learning_rate"] for o in model.optimizer.optimizers]

    assert _read(keras, set_one, optimizer=Both) == [0.25, 0.5]
    named = _read(
        keras,
        lambda model: model.optimizer.get_config(),
        optimizer=Both,
        learning_rate="deep/learning_rate:0",
    )
    assert (named["name"], named["learning_rate"]) == ("deep", 0.5)


def test_tensorboard_with_several_optimizers(keras: Any, tmp_path: Any) -> None:
    class Both:
        def __init__(self, rate: float) -> None:
            self._rate = rate

        def minimize(self, loss: Any, global_step: Any) -> Any:
            kernel, bias = tf.compat.v1.trainable_variables()
            first = train.AdamOptimizer(0.5).minimize(loss, var_list=[kernel])
            with tf.control_dependencies([first]):
                return train.AdagradOptimizer(self._rate).minimize(
                    loss, global_step, [bias]
                )

    board = keras.callbacks.TensorBoard(str(tmp_path))
    assert session_loop([board], epochs=2, optimizer=Both).steps == 2 * STEPS


def test_clone_model(keras2: Any) -> None:
    def read(model: Any) -> Any:
        clone = keras2.models.clone_model(model)
        return isinstance(model, keras2.Model), [layer.name for layer in clone.layers]

    is_model, names = _in_keras_graph(keras2, read)
    assert is_model
    assert names == ["features", "hidden", "norm", "out"]

    def refused(model: Any) -> Any:
        with pytest.raises((errors.LiveModelError, ValueError)) as caught:
            keras2.models.clone_model(model)
        return str(caught.value)

    assert "as_hooks(..., model=" in _read(keras2, refused)


def test_evaluate_with_data(keras2: Any) -> None:
    def read(model: Any) -> Any:
        with pytest.raises(errors.LiveModelError, match=r"validation=.*compile"):
            model.evaluate(X, Y)
        model.compile(loss="mse")
        return model.evaluate(X, Y, verbose=0), model.predict(X)

    loss, outputs = _in_keras_graph(keras2, read)
    assert loss == pytest.approx(float(np.mean((outputs - Y) ** 2)), rel=1e-5)


def test_verbose(keras: Any) -> None:
    seen: list[Any] = []

    class Reader(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            seen.append(self.params["verbose"])

    session_loop([Reader()], epochs=1)
    session_loop([Reader()], epochs=1, params={"verbose": 2})
    assert seen == [0, 2]
