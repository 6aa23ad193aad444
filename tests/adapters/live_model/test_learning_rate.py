"""The learning rate that callbacks read and set in a session loop."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import KERNEL, assert_same, build, feeds, fit, session_loop
from callback_recorder import callback_of
from estimator_models import KERAS2

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True

v1: Any = tf.compat.v1


def rate_of(model: Any) -> float:
    return float(np.asarray(model.optimizer.learning_rate))


def run(
    *groups: list[Any],
    rate: Any = 0.1,
    optimizer: Any = None,
    epochs: int = 2,
    **options: Any,
) -> list[float]:
    """Trains with the guests of each group; returns the rates that the steps had."""
    used: list[float] = []
    with tf.Graph().as_default():
        net = build(rate() if callable(rate) else rate, optimizer)
        slope = v1.gradients(net.loss, [net.bias])[0]
        options.update(steps_per_epoch=1, epochs=epochs)
        hooks = [hook for group in groups for hook in hb.as_hooks(group, **options)]
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            raw = session._tf_sess()
            while not session.should_stop():
                before, gradient = raw.run([net.bias, slope], feeds(net, 0))
                session.run(net.train_op, feeds(net, 0))
                used.append(float(((before - raw.run(net.bias)) / gradient)[0]))
    return used


def at_epochs(keras: Any, body: Callable[[Any, int], None]) -> list[Any]:
    """A callback that calls `body(model, epoch)` at each epoch's end."""

    def end(self: Any, epoch: int, logs: Any) -> None:
        body(self.model, epoch)

    return [callback_of(keras, on_epoch_end=end)]


class Keras2Sgd:
    """An optimizer of Keras 2 with the methods of TensorFlow's."""

    def __init__(self, rate: Any) -> None:
        keras2 = pytest.importorskip(KERAS2)
        self._legacy = keras2.optimizers.legacy.SGD(rate)

    def minimize(self, loss: Any, global_step: Any) -> Any:
        self._legacy.iterations = global_step
        return self._legacy.get_updates(loss, v1.trainable_variables())[0]


class UnderDependencies(tf.compat.v1.train.GradientDescentOptimizer):  # type: ignore[misc]
    """The usual way to run UPDATE_OPS: the constant then depends on the batch."""

    def minimize(self, loss: Any, **options: Any) -> Any:
        with tf.control_dependencies([loss]):
            return super().minimize(loss, **options)


def variable(kind: Any = np.float32) -> Any:
    return v1.get_variable("lr", initializer=kind(0.1), trainable=False)


def placeholder() -> Any:
    return v1.placeholder_with_default(0.1, [], name="learning_rate")


# Kind -> rate, optimizer.
RATES: dict[str, tuple[Any, Any]] = {
    "constant": (0.1, None),
    "under control dependencies": (0.1, UnderDependencies),
    "variable": (variable, None),
    "placeholder_with_default": (placeholder, None),
    "cast_variable": (lambda: tf.cast(variable(np.float64), tf.float32), None),
    "keras_legacy_optimizer": (0.1, Keras2Sgd),
}


@pytest.mark.parametrize("kind", ["constant", "placeholder_with_default"])
def test_a_step_after_the_last_epoch_has_the_set_rate(keras: Any, kind: str) -> None:
    """The raw session makes the last steps, so the run of the loop is one too many."""
    used: list[float] = []

    def body(model: Any, epoch: int) -> None:
        model.optimizer.learning_rate = 0.05

    with tf.Graph().as_default():
        rate = RATES[kind][0]
        net = build(rate() if callable(rate) else rate, None)
        slope = v1.gradients(net.loss, [net.bias])[0]
        hooks = hb.as_hooks(at_epochs(keras, body), steps_per_epoch=1, epochs=2)
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            raw = session._tf_sess()
            session.run(net.train_op, feeds(net, 0))
            raw.run(net.train_op, feeds(net, 0))
            before, gradient = raw.run([net.bias, slope], feeds(net, 0))
            session.run(net.train_op, feeds(net, 0))
            used.append(float(((before - raw.run(net.bias)) / gradient)[0]))
            assert session.should_stop()
    np.testing.assert_allclose(used, [0.05], rtol=1e-4)


@pytest.mark.parametrize("kind", RATES)
def test_learning_rate_is_read_and_set(keras: Any, kind: str) -> None:
    rate, optimizer = RATES[kind]
    read: list[float] = []

    def body(model: Any, epoch: int) -> None:
        read.append(rate_of(model))
        if epoch == 0:
            model.optimizer.learning_rate = 0.05
        elif epoch == 1:
            model.optimizer.lr.assign(0.025)
        read.append(float(np.asarray(model.optimizer.lr)))

    guests = at_epochs(keras, body)
    steps = run(guests, rate=rate, optimizer=optimizer, epochs=4)
    assert read == pytest.approx([0.1, 0.05, 0.05, 0.025, 0.025, 0.025, 0.025, 0.025])
    assert steps == pytest.approx([0.1, 0.05, 0.025, 0.025], rel=1e-3)


MORE_OPTIMIZERS = "Adagrad RMSProp Adadelta Ftrl ProximalGradientDescent"


@pytest.mark.parametrize(
    "name",
    [
        *("Adam", "Momentum"),
        *(
            pytest.param(name, marks=pytest.mark.one_tensorflow)
            for name in MORE_OPTIMIZERS.split()
        ),
    ],
)
def test_learning_rate_of_every_v1_optimizer(keras: Any, name: str) -> None:
    weights = []
    more = {"momentum": 0.9} if name == "Momentum" else {}
    optimizer = functools.partial(getattr(v1.train, f"{name}Optimizer"), **more)

    def body(model: Any, epoch: int) -> None:
        weights.append(model.get_weights()[0])
        assert rate_of(model) == pytest.approx(0.5 if epoch == 0 else 1e-8)
        model.optimizer.learning_rate = 1e-8

    run(at_epochs(keras, body), rate=0.5, optimizer=optimizer, epochs=3)
    assert not np.allclose(weights[0], KERNEL, atol=1e-4)
    np.testing.assert_allclose(weights[2], weights[1], atol=1e-4)


def test_learning_rate_named_by_the_user(keras: Any) -> None:
    def rate() -> Any:
        return v1.placeholder_with_default(0.1, [], name="base") * 0.5

    def body(model: Any, epoch: int) -> None:
        assert float(np.asarray(model.optimizer.lr)) == pytest.approx(0.1 + epoch * 0.1)
        model.optimizer.lr = 0.2 + epoch * 0.1

    steps = run(at_epochs(keras, body), rate=rate, learning_rate="base")
    assert steps == pytest.approx([0.05, 0.1], rel=1e-3)


def test_backend_functions_work_on_the_learning_rate(keras: Any) -> None:
    def body(model: Any, epoch: int) -> None:
        backend, now = keras.backend, pytest.approx(0.1 / 2**epoch)
        if hasattr(backend, "get_value"):
            assert backend.get_value(model.optimizer.lr) == now
            backend.set_value(model.optimizer.lr, 0.05 / 2**epoch)
        else:
            value = keras.ops.convert_to_numpy(model.optimizer.learning_rate)
            model.optimizer.learning_rate.assign(value * 0.5)
        assert model.optimizer.lr.dtype == tf.float32

    steps = run(at_epochs(keras, body), epochs=3)
    assert steps == pytest.approx([0.1, 0.05, 0.025], rel=1e-3)


@pytest.mark.parametrize("kind", ["constant", "variable"])
def test_two_as_hooks_calls_share_the_learning_rate(keras: Any, kind: str) -> None:
    read: list[float] = []

    def keep(self: Any, logs: Any) -> None:
        self.kept = self.model.optimizer.learning_rate

    def note(self: Any, epoch: int, logs: Any) -> None:
        read.append(float(self.kept.numpy()))
        assert read[-1] == rate_of(self.model)

    setter = keras.callbacks.LearningRateScheduler(lambda epoch: 0.08 / (epoch + 1))
    reads = callback_of(keras, on_train_begin=keep, on_epoch_end=note)
    groups = [[setter], [reads, keras.callbacks.ReduceLROnPlateau("loss", patience=9)]]
    groups = groups if kind == "constant" else groups[::-1]
    used = run(*groups, rate=RATES[kind][0], epochs=3)
    assert read == pytest.approx([0.08, 0.04, 0.08 / 3])
    assert used == pytest.approx(read, rel=1e-3)


def test_learning_rate_that_the_loop_feeds(keras: Any) -> None:
    """It is read, and a callback that sets it too is an error."""
    read: list[float] = []

    def feed(*guests: Any) -> None:
        with tf.Graph().as_default():
            rate = v1.placeholder_with_default(0.1, [], name="rate")
            net = build(rate)
            hooks = hb.as_hooks(guests, steps_per_epoch=1)
            with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
                for value in (0.2, 0.3):
                    session.run(net.train_op, {**feeds(net, 0), rate: value})

    feed(*at_epochs(keras, lambda model, epoch: read.append(rate_of(model))))
    assert read == pytest.approx([0.2, 0.3])
    with pytest.raises(errors.InvalidArgumentError, match="`feed_dict`"):
        feed(keras.callbacks.LearningRateScheduler(lambda epoch: 0.05))


@pytest.mark.parametrize(
    ("kind", "event"),
    [
        ("placeholder_with_default", "set_model"),
        ("variable", "set_model"),
        ("variable", "set_params"),
    ],
)
def test_learning_rate_before_there_is_a_session(
    keras: Any, kind: str, event: str
) -> None:
    """As in `fit`, the first step has it, and nobody needs to read it again."""

    def set_in(self: Any, value: Any) -> None:
        getattr(keras.callbacks.Callback, event)(self, value)
        optimizer = self.model.optimizer
        if event == "set_model":
            optimizer.learning_rate.assign(optimizer.learning_rate * 0.5)
        else:
            optimizer.learning_rate = 0.05

    def guests() -> list[Any]:
        return [callback_of(keras, **{event: set_in})]

    loop = session_loop(guests(), epochs=1, rate=RATES[kind][0], validate=False)
    assert_same(loop, fit(keras, guests(), epochs=1, validate=False))


def test_two_keras_optimizers_without_update_ops(keras: Any, keras2: Any) -> None:
    """The graph has only their variables, called `learning_rate`."""
    scheduler = keras.callbacks.LearningRateScheduler(lambda epoch: 0.1)
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        weight = v1.get_variable("w", initializer=1.0)
        optimizers = [keras2.optimizers.SGD(rate) for rate in (0.1, 0.2)]
        for optimizer in optimizers:
            optimizer.build([weight])
        with tf.control_dependencies([tf.identity(weight**2, name="loss")]):
            step.assign_add(1)
        (hook,) = hb.as_hooks(scheduler, steps_per_epoch=2)
        with pytest.raises(errors.RefusedError, match="learning_rate_1"):
            hook.begin()
        rate = optimizers[1].learning_rate
        hb.as_hooks(scheduler, steps_per_epoch=2, learning_rate=rate)[0].begin()
