"""`BackupAndRestore` keeps more of a session than its weights."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import tensorflow as tf
from callback_loops import STEPS, X, Y, session_loop
from keras_graph import keras_graph_loop

import hookbridge as hb

v1 = tf.compat.v1
DIES_AT = 2 * STEPS + 2


def dies(keras: Any, at: int = DIES_AT) -> Any:
    """Ends a run without any `end`, as a kill does."""

    class Dies(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        steps = 0

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            self.steps += 1
            if self.steps == at:
                raise KeyboardInterrupt

    return Dies()


def rate_variable() -> Any:
    return v1.get_variable("lr", initializer=0.1, trainable=False)


@pytest.mark.parametrize("rate", ["constant", "variable"])
def test_optimizer_and_learning_rate_are_restored(
    keras: Any, tmp_path: Path, rate: str
) -> None:
    c = keras.callbacks
    folder = str(tmp_path / "backup")

    def run(*callbacks: Any) -> Any:
        # Each epoch's rate depends on that of the epoch before.
        halves = c.LearningRateScheduler(lambda epoch, lr: lr * 0.5)
        return session_loop(
            [*callbacks, halves],
            optimizer=v1.train.AdamOptimizer,
            rate=0.1 if rate == "constant" else rate_variable,
            validate=False,
        )

    whole = run()
    with pytest.raises(KeyboardInterrupt):
        run(c.BackupAndRestore(folder), dies(keras))
    again = run(c.BackupAndRestore(folder))
    assert len(again.history["loss"]) == 2
    assert again.steps == whole.steps
    for ours, theirs in zip(again.weights, whole.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    for key, values in again.history.items():
        np.testing.assert_allclose(values, whole.history[key][2:], rtol=1e-5)
    assert not Path(folder).exists() or not list(Path(folder).rglob("*.h5"))


@pytest.mark.slow
def test_keras_model_in_the_graph(keras: Any, keras2: Any, tmp_path: Path) -> None:
    """Adam's moments and the moving averages continue where they were."""
    callback = keras.callbacks.BackupAndRestore

    def run(*callbacks: Any) -> list[Any]:
        return keras_graph_loop(keras2, list(callbacks), epochs=4)[0]

    class Start(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        """Sets the same weights in each session, before the backup is read."""

        def on_train_begin(self, logs: Any = None) -> None:
            values = np.random.RandomState(5)
            weights = self.model.get_weights()
            self.model.set_weights([values.uniform(0.5, 1.0, w.shape) for w in weights])

    whole = run(Start())
    folder = str(tmp_path / "backup")
    with pytest.raises(KeyboardInterrupt):
        run(Start(), callback(folder), dies(keras))
    again = run(Start(), callback(folder))
    for ours, theirs in zip(again, whole, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_backup_of_an_older_release_is_reported(
    keras: Any, tmp_path: Path, said: Any
) -> None:
    """The file of Keras 3 may lack the part that hookbridge adds."""
    folder = tmp_path / "backup"
    options: dict[str, Any] = {"optimizer": v1.train.AdamOptimizer, "validate": False}
    with pytest.raises(KeyboardInterrupt):
        session_loop(
            [keras.callbacks.BackupAndRestore(str(folder)), dies(keras)], **options
        )
    path = folder / "latest.weights.h5"
    if not path.exists():  # Keras 2 writes a checkpoint of the whole session
        assert list(folder.rglob("*.index"))
        return
    with h5py.File(path, "a") as file:
        del file["hookbridge_session"]
    run = session_loop([keras.callbacks.BackupAndRestore(str(folder))], **options)
    assert run.steps == 4 * STEPS
    assert "dense/kernel/Adam_1" in said(str(path))[0].getMessage()


# --- Estimator.train ------------------------------------------------------------------


def _model(features: Any, labels: Any) -> Any:
    with v1.variable_scope("dense"):
        kernel = v1.get_variable("kernel", initializer=np.ones((2, 1), "float32"))
    return tf.reduce_mean(tf.square(features @ kernel - labels))


def _input() -> Any:
    # One batch, so that a new session sees what the next step would have seen.
    return tf.data.Dataset.from_tensors((X, Y)).repeat()


def _estimator(callbacks: list[Any], folder: Path) -> Any:
    estimators = importlib.import_module("hookbridge.estimator")

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = _model(features, labels)
        optimizer = v1.train.AdamOptimizer(0.1)
        train_op = optimizer.minimize(loss, v1.train.get_global_step())
        return estimators.EstimatorSpec(mode, loss=loss, train_op=train_op)

    # Each run has its own folder: only the backup can restore anything.
    config = estimators.RunConfig(str(folder), save_checkpoints_steps=100)
    estimator = estimators.Estimator(model_fn, config=config)
    hooks = hb.as_hooks(callbacks, steps_per_epoch=STEPS, epochs=4)
    estimator.train(_input, hooks=hooks)
    return (
        int(estimator.get_variable_value("global_step")),
        estimator.get_variable_value("dense/kernel"),
    )


def test_estimator(keras: Any, tmp_path: Path) -> None:
    run, backup = _estimator, str(tmp_path / "backup")
    whole = run([keras.callbacks.History()], tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run([keras.callbacks.BackupAndRestore(backup), dies(keras)], tmp_path / "a")
    history = keras.callbacks.History()
    again = run([keras.callbacks.BackupAndRestore(backup), history], tmp_path / "b")
    assert len(history.history["loss"]) == 2
    assert again[0] == whole[0] == 4 * STEPS
    np.testing.assert_allclose(again[1], whole[1], rtol=1e-5)
