"""Callbacks in each of their hosts: stock ones, and what users' ask of a session."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_hosts import Value, in_estimator, losses
from callback_loops import STEPS, VAL_X, VAL_Y, Loop, assert_same, fit, session_loop
from callback_recorder import callback_of
from hook_fetching import hook_of
from keras_graph import keras_graph_loop

ONE_KERAS = True

v1 = tf.compat.v1


def test_backend_functions_work_on_weights(keras2: Any) -> None:
    backend = keras2.backend
    seen: list[Any] = []

    def zero(self: Any, epoch: int, logs: Any) -> None:
        kernel = self.model.get_layer("out").kernel
        seen.append(backend.get_value(kernel))
        backend.set_value(kernel, 0 * seen[0])
        seen.append(self.model.get_layer("out").get_weights()[0])

    callback = callback_of(keras2, on_epoch_end=zero)
    weights, _ = keras_graph_loop(keras2, callback, epochs=1)
    assert np.any(seen[0])
    assert not np.any(seen[1])
    assert not np.any(weights[-2])


def test_strategy_and_counters(keras: Any) -> None:
    seen: list[Any] = []

    def look(self: Any, epoch: int, logs: Any) -> None:
        model = self.model
        counters = [model._train_counter, model._test_counter]
        assert model.distribute_strategy.num_replicas_in_sync == 1
        assert model.distribute_strategy.extended.should_checkpoint
        assert model.metrics_names == ["loss", "mae"]
        seen.append([int(c.numpy()) for c in counters])

    session_loop([callback_of(keras, on_epoch_end=look)], epochs=2)
    # As Keras does: the batches of the whole training, and of the last validation.
    assert seen == [[STEPS, 2], [2 * STEPS, 2]]


def test_state_survives_a_restart(keras: Any, tmp_path: Path) -> None:
    def stop() -> Any:
        return keras.callbacks.EarlyStopping("loss", min_delta=100.0, patience=4)

    in_estimator([stop()], tmp_path, epochs=6, max_steps=2 * STEPS + 1)
    in_estimator([stop()], tmp_path, epochs=6)
    latest = tf.train.latest_checkpoint(str(tmp_path))
    # With its restored count it stops after five epochs; counting anew, never.
    assert tf.train.load_variable(latest, "global_step") == 5 * STEPS
    assert Path(f"{latest}.hookbridge.json").exists()


def test_callback_that_raises(keras: Any, tmp_path: Path) -> None:
    """The session is closed, the checkpoint is whole, no thread is left."""
    sessions: list[Any] = []

    def fail(self: Any, batch: int, logs: Any) -> None:
        if batch == 2:
            raise ZeroDivisionError("mine")

    fails = callback_of(keras, on_train_batch_end=fail)
    keep = hook_of(after_create_session=lambda self, s, coord: sessions.append(s))
    v1.summary.FileWriterCache.clear()
    before = set(threading.enumerate())
    with pytest.raises(ZeroDivisionError, match="mine"):
        in_estimator([fails], tmp_path, epochs=6, extra=[keep])
    with pytest.raises(RuntimeError, match="closed"):
        sessions[0].run(sessions[0].graph.get_operations()[0])
    latest = tf.train.latest_checkpoint(str(tmp_path))
    assert tf.train.load_variable(latest, "global_step") == 3
    v1.summary.FileWriterCache.clear()
    assert set(threading.enumerate()) <= before


def test_estimator_validates_on_the_live_variables(keras: Any, tmp_path: Path) -> None:
    """In memory: the validation neither writes nor reads a checkpoint."""

    class InMemory:
        metric_names = ("loss",)

        def begin(self) -> None:
            with v1.variable_scope("", reuse=True), v1.name_scope("val"):
                self.loss, _ = losses(VAL_X, VAL_Y)

        def run(self, session: Any, report: Any) -> dict[str, float]:
            report.batch_begin(0)
            values = {"loss": session.run(self.loss)}
            report.batch_end(0, values)
            return values

    log: list[Any] = []

    def check(self: Any, epoch: int, logs: Any) -> None:
        kernel, bias = self.model.get_weights()
        expected = float(np.mean((VAL_X @ kernel + bias - VAL_Y) ** 2))
        assert logs["val_loss"] == pytest.approx(expected, rel=1e-5)

    tests = callback_of(
        keras,
        on_test_batch_end=lambda self, batch, logs: log.append(logs["loss"]),
        on_epoch_end=check,
    )
    in_estimator([tests], tmp_path, epochs=6, validation=InMemory())
    assert len(log) == 6
    assert len(set(log)) == 6


EPOCHS = 40


def val_data() -> Any:
    return tf.data.Dataset.from_tensor_slices((VAL_X, VAL_Y)).batch(4)


def guests(keras: Any, folder: Path) -> list[Any]:
    """Callbacks that set the rate or the weights, that stop, and that write files."""
    c = keras.callbacks
    return [
        c.LearningRateScheduler(lambda epoch, lr: lr * 0.9),
        c.ReduceLROnPlateau("val_loss", patience=1, min_delta=0.05, factor=0.5),
        c.EarlyStopping("val_loss", patience=3, restore_best_weights=True),
        c.CSVLogger(str(folder / "log.csv")),
        c.ModelCheckpoint(
            str(folder / "w{epoch:02d}-{val_mae:.3f}.weights.h5"),
            monitor="val_mae",
            save_best_only=True,
            save_weights_only=True,
        ),
        c.TensorBoard(str(folder / "tb"), write_graph=False),
        c.TerminateOnNaN(),
    ]


HOSTS: dict[str, Callable[..., Value]] = {
    "Estimator": in_estimator,
    "Estimator of a Keras model": partial(in_estimator, uses_keras=True),
}


@pytest.mark.slow
def test_same_as_in_fit(keras: Any, tmp_path: Path) -> None:
    places = {name: tmp_path / name for name in ("fit", "session", *HOSTS)}
    for place in places.values():
        place.mkdir()
    expected = fit(keras, guests(keras, places["fit"]), epochs=EPOCHS)
    assert len(expected.history["loss"]) < EPOCHS
    found = {"session": session_loop(guests(keras, places["session"]), epochs=EPOCHS)}
    for name, host in HOSTS.items():
        history = keras.callbacks.History()
        callbacks = [*guests(keras, places[name]), history]
        model_dir = places[name] / "model"
        value = host(callbacks, model_dir, epochs=EPOCHS, val_data=val_data)
        weights = [value("dense/kernel"), value("dense/bias")]
        found[name] = Loop(history.history, weights, int(value("global_step")))
    for name, loop in found.items():
        assert_same(loop, expected)
        for pattern in ("*.h5", "log.csv"):
            files = [
                sorted(p.name for p in places[n].glob(pattern)) for n in ("fit", name)
            ]
            assert files[0] == files[1] != [], name
