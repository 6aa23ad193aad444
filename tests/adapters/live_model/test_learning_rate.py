"""The learning rate that callbacks read and set in a session loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import KERNEL, assert_same, build, feeds, fit, session_loop
from live_body import run

import hookbridge as hb
from hookbridge import compat

v1 = tf.compat.v1


def _keras2_sgd(rate: Any) -> Any:
    import importlib

    name = "keras" if tf.__version__.startswith("2.15") else "tf_keras"
    legacy = importlib.import_module(name).optimizers.legacy.SGD(rate)

    class Adapter:
        def minimize(self, loss: Any, global_step: Any) -> Any:
            variables = v1.trainable_variables()
            legacy.iterations = global_step
            return legacy.get_updates(loss, variables)[0]

    return Adapter()


RATES: dict[str, tuple[Any, Any]] = {
    "constant": (0.1, None),
    "variable": (lambda: v1.get_variable("lr", initializer=0.1, trainable=False), None),
    "placeholder_with_default": (
        lambda: v1.placeholder_with_default(0.1, [], name="learning_rate"),
        None,
    ),
    "cast_variable": (
        lambda: tf.cast(
            v1.get_variable(
                "lr", initializer=np.float64(0.1), dtype=tf.float64, trainable=False
            ),
            tf.float32,
        ),
        None,
    ),
    "keras_legacy_optimizer": (0.1, _keras2_sgd),
}


@pytest.mark.parametrize("kind", RATES)
def test_learning_rate_is_read_and_set(keras: Any, kind: str) -> None:
    rate, optimizer = RATES[kind]
    read: list[float] = []

    def body(model: Any, epoch: int) -> None:
        read.append(float(np.asarray(model.optimizer.learning_rate)))
        if epoch == 0:
            model.optimizer.learning_rate = 0.05
        elif epoch == 1:
            model.optimizer.lr.assign(0.025)
        read.append(float(np.asarray(model.optimizer.lr)))

    steps = run(keras, body, rate=rate, optimizer=optimizer, epochs=4)
    assert read == pytest.approx([0.1, 0.05, 0.05, 0.025, 0.025, 0.025, 0.025, 0.025])
    # The rates that the session's steps really had.
    assert steps == pytest.approx([0.1, 0.05, 0.025], rel=1e-3)


def test_learning_rate_of_an_optimizer_built_under_control_dependencies(
    keras: Any,
) -> None:
    """The usual way to run UPDATE_OPS: the constant then depends on the batch."""

    class Under(tf.compat.v1.train.GradientDescentOptimizer):  # type: ignore[misc]
        def minimize(self, loss: Any, **options: Any) -> Any:
            with tf.control_dependencies([loss]):
                return super().minimize(loss, **options)

    def body(model: Any, epoch: int) -> None:
        model.optimizer.lr = float(model.optimizer.lr.numpy()) * 0.5

    steps = run(keras, body, optimizer=Under, epochs=3)
    assert steps == pytest.approx([0.1, 0.05], rel=1e-3)


@pytest.mark.parametrize(
    "optimizer",
    [
        v1.train.AdamOptimizer,
        v1.train.AdagradOptimizer,
        v1.train.RMSPropOptimizer,
        v1.train.AdadeltaOptimizer,
        v1.train.FtrlOptimizer,
        v1.train.ProximalGradientDescentOptimizer,
        lambda rate: v1.train.MomentumOptimizer(rate, 0.9),
    ],
)
def test_learning_rate_of_every_v1_optimizer(keras: Any, optimizer: Any) -> None:
    weights = []

    def body(model: Any, epoch: int) -> None:
        weights.append(model.get_weights()[0])
        assert float(np.asarray(model.optimizer.learning_rate)) == pytest.approx(
            0.5 if epoch == 0 else 1e-8
        )
        model.optimizer.learning_rate = 1e-8

    run(keras, body, rate=0.5, optimizer=optimizer, epochs=3)
    assert not np.allclose(weights[0], KERNEL, atol=1e-4)
    np.testing.assert_allclose(weights[2], weights[1], atol=1e-4)


def test_schedule_is_readable_and_not_settable(keras: Any) -> None:
    read: list[float] = []

    def rate() -> Any:
        step = v1.train.get_or_create_global_step()
        return v1.train.exponential_decay(0.1, step, 1, 0.5)

    def body(model: Any, epoch: int) -> None:
        read.append(float(np.asarray(model.optimizer.learning_rate)))
        with pytest.raises(TypeError, match="not settable"):
            model.optimizer.learning_rate = 1.0

    run(keras, body, rate=rate, epochs=3)
    rates = [0.05, 0.025, 0.0125] if compat.is_keras3(keras) else [0.1, 0.05, 0.025]
    assert read == pytest.approx(rates)


def test_learning_rate_named_by_the_user(keras: Any) -> None:
    def rate() -> Any:
        return v1.placeholder_with_default(0.1, [], name="base") * 0.5

    def body(model: Any, epoch: int) -> None:
        assert float(np.asarray(model.optimizer.lr)) == pytest.approx(0.1 + epoch * 0.1)
        model.optimizer.lr = 0.2 + epoch * 0.1

    steps = run(keras, body, rate=rate, epochs=3, learning_rate="base")
    assert steps == pytest.approx([0.05, 0.1], rel=1e-3)


def test_backend_functions_work_on_the_learning_rate(keras: Any) -> None:
    def body(model: Any, epoch: int) -> None:
        backend = keras.backend
        if hasattr(backend, "get_value"):
            assert backend.get_value(model.optimizer.lr) == pytest.approx(
                0.1 / 2**epoch
            )
            backend.set_value(model.optimizer.lr, 0.05 / 2**epoch)
        else:
            value = keras.ops.convert_to_numpy(model.optimizer.learning_rate)
            model.optimizer.learning_rate.assign(value * 0.5)
        assert model.optimizer.lr.dtype == tf.float32

    assert run(keras, body, epochs=4) == pytest.approx([0.1, 0.05, 0.025], rel=1e-3)


@pytest.mark.parametrize(
    ("kind", "setter_first"),
    [("constant", True), ("variable", False), ("placeholder_with_default", False)],
)
def test_two_as_hooks_calls_share_the_learning_rate(
    keras: Any, kind: str, setter_first: bool
) -> None:
    read: list[float] = []
    used: list[float] = []

    class Reads(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, logs: Any = None) -> None:
            self.kept = self.model.optimizer.learning_rate

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            read.append(float(self.kept.numpy()))
            assert read[-1] == float(np.asarray(self.model.optimizer.learning_rate))

    make = RATES[kind][0]
    with tf.Graph().as_default():
        net = build(make() if callable(make) else make)
        slope = v1.gradients(net.loss, [net.bias])[0]
        setter = keras.callbacks.LearningRateScheduler(lambda epoch: 0.08 / (epoch + 1))
        groups = [
            hb.as_hooks(setter, steps_per_epoch=1),
            hb.as_hooks(
                [Reads(), keras.callbacks.ReduceLROnPlateau("loss", patience=9)],
                steps_per_epoch=1,
            ),
        ]
        first, second = groups if setter_first else groups[::-1]
        hooks = [*first, *second]
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            raw = session._tf_sess()
            for step in range(3):
                before, gradient = raw.run([net.bias, slope], feeds(net, step))
                session.run(net.train_op, feeds(net, step))
                used.append(float(((before - raw.run(net.bias)) / gradient)[0]))
    assert read == pytest.approx([0.08, 0.04, 0.08 / 3])
    assert used == pytest.approx(read, rel=1e-3)


def test_learning_rate_that_the_loop_feeds_is_read(keras: Any) -> None:
    read: list[float] = []

    class Reads(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            read.append(float(np.asarray(self.model.optimizer.learning_rate)))

    with tf.Graph().as_default():
        rate = v1.placeholder_with_default(0.1, [], name="rate")
        net = build(rate)
        hooks = hb.as_hooks(Reads(), steps_per_epoch=1)
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            for value in (0.2, 0.3):
                session.run(net.train_op, {**feeds(net, 0), rate: value})
    assert read == pytest.approx([0.2, 0.3])


@pytest.mark.parametrize(
    ("kind", "event"),
    [
        ("constant", "set_params"),
        ("placeholder_with_default", "set_model"),
        ("variable", "set_model"),
        ("variable", "set_params"),
    ],
)
def test_learning_rate_before_there_is_a_session(
    keras: Any, kind: str, event: str
) -> None:
    """As in `fit`, the first step has it, and nobody needs to read it again."""

    class Sets(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def set_model(self, model: Any) -> None:
            super().set_model(model)
            if event == "set_model":
                rate = model.optimizer.learning_rate
                rate.assign(rate * 0.5)

        def set_params(self, params: Any) -> None:
            if event == "set_params":
                self.model.optimizer.learning_rate = 0.05

    make = RATES[kind][0]
    loop = session_loop([Sets()], epochs=1, rate=make, validate=False)
    assert_same(loop, fit(keras, [Sets()], epochs=1, validate=False))


@pytest.mark.parametrize("kind", ["constant", "variable", "placeholder_with_default"])
def test_learning_rate_that_the_loop_sets_between_events(keras: Any, kind: str) -> None:
    callback = keras.callbacks.Callback()
    make = RATES[kind][0]
    with tf.Graph().as_default():
        net = build(make() if callable(make) else make)
        hooks = hb.as_hooks(callback, steps_per_epoch=9)
        session = v1.train.MonitoredTrainingSession(hooks=hooks)
    with session:  # runs eagerly but for the session
        callback.model.optimizer.learning_rate.assign(0.0)
        session.run(net.train_op, feeds(net, 0))
        np.testing.assert_array_equal(session.run(net.kernel), KERNEL)
