"""A learning rate that is a schedule, or that a hook feeds, beside callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import BATCH, BIAS, FEATURES, KERNEL, STEPS, X, Y, fit, session_loop
from callback_recorder import EVENTS, noting

import hookbridge as hb

v1 = tf.compat.v1
EPOCHS = 3


def native(keras: Any, callbacks: list[Any]) -> Any:
    """`fit` under a schedule that halves the rate in each step; the weights."""
    model = keras.Sequential([keras.layers.Input((FEATURES,)), keras.layers.Dense(1)])
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    model.compile(keras.optimizers.SGD(schedule), "mse", jit_compile=False)
    model.set_weights([KERNEL, BIAS])
    options = {"shuffle": False, "epochs": EPOCHS, "verbose": 0}
    model.fit(X, Y, BATCH, callbacks=callbacks, **options)
    return model.get_weights()


def bridged(callbacks: list[Any]) -> Any:
    def decay() -> Any:
        step = v1.train.get_or_create_global_step()
        return v1.train.exponential_decay(0.1, step, 1, 0.5)

    return session_loop(callbacks, rate=decay, epochs=EPOCHS, validate=False).weights


def reader(keras: Any, seen: list[Any]) -> Any:
    """Reads the rate in every event."""

    def read(self: Any, event: str, *args: Any) -> None:
        rate = self.model.optimizer.learning_rate
        seen.append((event, round(float(np.asarray(rate)), 6)))

    events = [e for e in EVENTS if "_test_" not in e and e != "on_train_begin"]
    return noting(keras, read, events)


@pytest.mark.parametrize("is_resource", [True, False])
def test_it_is_read_as_in_fit(keras: Any, is_resource: bool) -> None:
    of_fit, of_session = list[Any](), list[Any]()
    native(keras, [reader(keras, of_fit)])
    resources = v1.resource_variables_enabled()
    try:
        if not is_resource:
            v1.disable_resource_variables()
        bridged([reader(keras, of_session)])
    finally:
        if resources:
            v1.enable_resource_variables()
    assert len(of_fit) == EPOCHS * (2 * STEPS + 2) + 1
    assert of_session == of_fit


SETTERS: dict[str, Callable[[Any], Any]] = {
    "scheduler": lambda keras: keras.callbacks.LearningRateScheduler(
        lambda epoch, rate: rate * 0.5
    ),
    "plateau": lambda keras: keras.callbacks.ReduceLROnPlateau(
        "loss", patience=1, min_delta=100.0, factor=0.5
    ),
}


@pytest.mark.parametrize("name", SETTERS)
def test_setting_it_has_no_effect_in_keras_2(name: str, keras2: Any) -> None:
    found: list[Any] = []
    for run in (lambda guests: native(keras2, guests), bridged):
        rates, history = list[Any](), keras2.callbacks.History()
        # The ready-made callbacks, which `hookbridge train` adds, are of no one Keras.
        ready = [hb.callbacks.EarlyStopper(lambda _: False)] if run is bridged else []
        guests = [SETTERS[name](keras2), *ready, history, reader(keras2, rates)]
        found.append((run(guests), history.history["lr"], rates))
    (weights, history, rates), (own_weights, own_history, own_rates) = found
    assert (own_history, own_rates) == (pytest.approx(history), rates)
    for theirs, ours in zip(weights, own_weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize("name", SETTERS)
def test_setting_it_is_refused_in_keras_3(
    subtests: pytest.Subtests, name: str, keras3: Any
) -> None:
    for train in (lambda guests: native(keras3, guests), bridged):
        with subtests.test(str(train)):
            with pytest.raises((TypeError, AttributeError), match="not settable"):
                train([SETTERS[name](keras3)])


ONE_KERAS = True

RATES: dict[str, Callable[[], Any]] = {
    "placeholder": lambda: v1.placeholder_with_default(
        np.float32(0.1), [], name="learning_rate"
    ),
    "copy": lambda: tf.identity(tf.constant(0.1), name="learning_rate"),
}


class Feeds(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Feeds the learning rate in each step and notes what the step had."""

    def __init__(self, *, by_name: bool = True) -> None:
        self._by_name = by_name
        self.seen: list[float] = []

    def before_run(self, run_context: Any) -> Any:
        key: Any = "learning_rate:0"
        if not self._by_name:
            key = run_context.session.graph.get_tensor_by_name(key)
        return v1.train.SessionRunArgs(key, feed_dict={key: 0.001})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.seen.append(round(float(np.asarray(run_values.results)), 6))


def scheduler(keras: Any) -> Any:
    return keras.callbacks.LearningRateScheduler(lambda epoch: 0.05)


@pytest.mark.parametrize(
    ("kind", "first"), [*((kind, "hook") for kind in RATES), ("copy", "callback")]
)
def test_a_conflict_is_found_as_between_two_hooks(
    kind: str, first: str, keras: Any
) -> None:
    def guests() -> list[Any]:
        pair = [Feeds(by_name=first == "hook"), scheduler(keras)]
        return pair if first == "hook" else pair[::-1]

    with pytest.raises(RuntimeError, match="Same tensor is fed by two hooks") as ours:
        session_loop(guests(), rate=RATES[kind], epochs=1, validate=False)
    with pytest.raises(RuntimeError) as native:
        session_loop([Feeds(), Feeds()], rate=RATES[kind], epochs=1, validate=False)
    assert str(native.value).partition("Conflict")[0] in str(ours.value)


def test_a_variable_takes_both_in_either_loop(keras: Any) -> None:
    """What is assigned and what is fed are no conflict: the step uses what is fed."""

    def variable() -> Any:
        rate = v1.get_variable("rate", initializer=0.1, trainable=False)
        return tf.identity(rate, name="learning_rate")

    of_fit, of_session = Feeds(), Feeds()
    native = fit(keras, hb.as_callbacks([of_fit, scheduler(keras)]), validate=False)
    ours = session_loop([of_session, scheduler(keras)], rate=variable, validate=False)
    assert set(of_session.seen) == set(of_fit.seen) == {0.001}
    for expected, found in zip(native.weights, ours.weights, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
