"""A learning rate under a schedule reads, and is set, as in `fit` of the same Keras."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import BATCH, BIAS, FEATURES, KERNEL, STEPS, X, Y, session_loop

import hookbridge as hb

v1 = tf.compat.v1
Make = Callable[[Any], Any]
EPOCHS = 3


def native(keras: Any, callbacks: list[Any]) -> Any:
    """`fit` under a schedule that halves the rate in each step; the weights."""
    model = keras.Sequential([keras.layers.Input((FEATURES,)), keras.layers.Dense(1)])
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    model.compile(keras.optimizers.SGD(schedule), "mse", jit_compile=False)
    model.set_weights([KERNEL, BIAS])
    model.fit(
        X,
        Y,
        batch_size=BATCH,
        shuffle=False,
        epochs=EPOCHS,
        callbacks=callbacks,
        verbose=0,
    )
    return model.get_weights()


def decay() -> Any:
    step = v1.train.get_or_create_global_step()
    return v1.train.exponential_decay(0.1, step, 1, 0.5)


def bridged(callbacks: list[Any]) -> Any:
    return session_loop(callbacks, rate=decay, epochs=EPOCHS, validate=False).weights


def reader(keras: Any) -> Any:
    class Reads(keras.callbacks.Callback):  # type: ignore[misc,name-defined]
        """Reads the rate in every event."""

        def __init__(self) -> None:
            super().__init__()
            self.seen: list[tuple[str, float]] = []

        def _read(self, event: str) -> None:
            rate = self.model.optimizer.learning_rate
            self.seen.append((event, round(float(np.asarray(rate)), 6)))

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self._read("epoch_begin")

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            self._read("batch_begin")

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self._read("batch_end")

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self._read("epoch_end")

        def on_train_end(self, logs: Any = None) -> None:
            self._read("train_end")

    return Reads()


def test_it_is_read_as_in_fit(keras: Any) -> None:
    of_fit, of_session = reader(keras), reader(keras)
    native(keras, [of_fit])
    bridged([of_session])
    assert len(of_fit.seen) == EPOCHS * (2 * STEPS + 2) + 1
    assert of_session.seen == of_fit.seen


def test_it_is_read_from_a_reference_variable_too(keras2: Any) -> None:
    of_fit, of_session = reader(keras2), reader(keras2)
    native(keras2, [of_fit])
    resources = v1.resource_variables_enabled()
    v1.disable_resource_variables()
    try:
        bridged([of_session])
    finally:
        if resources:
            v1.enable_resource_variables()
    assert of_session.seen == of_fit.seen


SETTERS: dict[str, Make] = {
    "scheduler": lambda keras: keras.callbacks.LearningRateScheduler(
        lambda epoch, rate: rate * 0.5
    ),
    "plateau": lambda keras: keras.callbacks.ReduceLROnPlateau(
        "loss", patience=1, min_delta=100.0, factor=0.5
    ),
}


@pytest.mark.parametrize("name", SETTERS)
def test_setting_it_has_no_effect_in_keras_2(name: str, keras2: Any) -> None:
    histories = [keras2.callbacks.History() for _ in range(2)]
    rates = [reader(keras2) for _ in range(2)]
    of_fit = native(keras2, [SETTERS[name](keras2), histories[0], rates[0]])
    of_session = bridged([SETTERS[name](keras2), histories[1], rates[1]])
    assert rates[1].seen == rates[0].seen
    assert histories[1].history["lr"] == pytest.approx(histories[0].history["lr"])
    for ours, theirs in zip(of_session, of_fit, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_a_callback_of_every_keras_changes_nothing(keras2: Any) -> None:
    """The ready-made callbacks, which `hookbridge train` adds, are of no one Keras."""
    ready_made = hb.callbacks.EarlyStopper(lambda metrics: False)
    seen = [reader(keras2) for _ in range(2)]
    native(keras2, [SETTERS["scheduler"](keras2), seen[0]])
    bridged([SETTERS["scheduler"](keras2), ready_made, seen[1]])
    assert seen[1].seen == seen[0].seen


@pytest.mark.parametrize("name", SETTERS)
def test_setting_it_is_refused_in_keras_3(name: str, keras3: Any) -> None:
    for train in (lambda guests: native(keras3, guests), bridged):
        with pytest.raises((TypeError, AttributeError), match="not settable"):
            train([SETTERS[name](keras3)])
