"""What users' callbacks ask of a session, in each of the hosts."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_loops import BATCH, STEPS, VAL_X, VAL_Y, X, Y, build, feeds, session_loop
from keras_graph import keras_graph_loop

import hookbridge as hb
from hookbridge import errors

ONE_KERAS = True


estimators = importlib.import_module("hookbridge.estimator")
v1 = tf.compat.v1


def test_backend_functions_work_on_weights(keras2: Any) -> None:
    backend = keras2.backend
    seen: list[Any] = []

    class Zeroes(keras2.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            kernel = self.model.get_layer("out").kernel
            seen.append(backend.get_value(kernel))
            backend.set_value(kernel, 0 * seen[0])
            seen.append(self.model.get_layer("out").get_weights()[0])

    weights, _ = keras_graph_loop(keras2, Zeroes(), epochs=1)
    assert np.any(seen[0])
    assert not np.any(seen[1])
    assert not np.any(weights[-2])


def test_validation_by_a_function_has_events(keras: Any) -> None:
    log: list[Any] = []

    class Tests(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_test_begin(self, logs: Any = None) -> None:
            log.append("begin")

        def on_test_end(self, logs: Any = None) -> None:
            log.append(logs)

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            log.append(logs["val_loss"])

    with tf.Graph().as_default():
        net = build()
        hooks = hb.as_hooks(
            Tests(), steps_per_epoch=1, validation=lambda: {"loss": np.float32(1.5)}
        )
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            session.run(net.train_op, feeds(net, 0))
    assert log == ["begin", {"loss": 1.5}, 1.5]
    assert type(log[2]) is float


def test_strategy_and_counters(keras: Any) -> None:
    seen: list[Any] = []

    class Looks(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            model = self.model
            counters = [model._train_counter, model._test_counter]
            assert model.distribute_strategy.num_replicas_in_sync == 1
            assert model.distribute_strategy.extended.should_checkpoint
            assert model.metrics_names == ["loss", "mae"]
            seen.append([int(c.numpy()) for c in counters])

    session_loop([Looks()], epochs=2)
    # As Keras does: the batches of the whole training, and of the last validation.
    assert seen == [[STEPS, 2], [2 * STEPS, 2]]


# --- Estimator.train ------------------------------------------------------------------


def data() -> Any:
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(BATCH).repeat()


def _loss(features: Any, labels: Any) -> Any:
    with v1.variable_scope("dense"):
        kernel = v1.get_variable("kernel", initializer=np.ones((2, 1), "float32"))
    return tf.reduce_mean(tf.square(features @ kernel - labels), name="loss")


def _model_fn(features: Any, labels: Any, mode: str) -> Any:
    loss = _loss(features, labels)
    optimizer = v1.train.GradientDescentOptimizer(0.1)
    train_op = optimizer.minimize(loss, v1.train.get_global_step())
    return estimators.EstimatorSpec(mode, loss=loss, train_op=train_op)


def _estimator(
    callbacks: list[Any],
    folder: Path,
    max_steps: int | None = None,
    validation: Any = None,
    extra: Any = (),
) -> None:
    config = estimators.RunConfig(
        str(folder), save_checkpoints_steps=2, save_summary_steps=None
    )
    hooks = hb.as_hooks(
        callbacks, steps_per_epoch=STEPS, epochs=6, validation=validation
    )
    estimators.Estimator(_model_fn, config=config).train(
        data, hooks=[*hooks, *extra], max_steps=max_steps
    )


def test_state_survives_a_restart(keras: Any, tmp_path: Path) -> None:
    def stop() -> Any:
        return keras.callbacks.EarlyStopping("loss", min_delta=100.0, patience=4)

    _estimator([stop()], tmp_path, max_steps=2 * STEPS + 1)
    _estimator([stop()], tmp_path)
    latest = tf.train.latest_checkpoint(str(tmp_path))
    # With its restored count it stops after five epochs; counting anew, never.
    assert tf.train.load_variable(latest, "global_step") == 5 * STEPS
    assert Path(f"{latest}.hookbridge.json").exists()


def test_callback_that_raises(keras: Any, tmp_path: Path) -> None:
    """The session is closed, the checkpoint is whole, no thread is left."""
    sessions: list[Any] = []

    class Raises(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch == 2:
                raise ZeroDivisionError("mine")

    class Keep(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        def after_create_session(self, session: Any, coord: Any) -> None:
            sessions.append(session)

    v1.summary.FileWriterCache.clear()
    before = set(threading.enumerate())
    with pytest.raises(ZeroDivisionError, match="mine"):
        _estimator([Raises()], tmp_path, extra=[Keep()])
    with pytest.raises(RuntimeError, match="closed"):
        sessions[0].run(sessions[0].graph.get_operations()[0])
    latest = tf.train.latest_checkpoint(str(tmp_path))
    assert tf.train.load_variable(latest, "global_step") == 2
    v1.summary.FileWriterCache.clear()
    assert set(threading.enumerate()) <= before


def test_unknown_monitor_in_an_estimator(keras: Any, tmp_path: Path) -> None:
    stop = keras.callbacks.EarlyStopping("lost", mode="min")
    with pytest.raises(errors.UnknownMetricError, match="It produces: loss"):
        _estimator([stop], tmp_path)
    assert not list(tmp_path.glob("model.ckpt*"))


def test_estimator_validates_on_the_live_variables(keras: Any, tmp_path: Path) -> None:
    """In memory: the validation neither writes nor reads a checkpoint."""

    class InMemory:
        metric_names = ("loss",)

        def begin(self) -> None:
            with v1.variable_scope("", reuse=True), v1.name_scope("val"):
                self.loss = _loss(VAL_X, VAL_Y)

        def run(self, session: Any, report: Any) -> dict[str, float]:
            report.batch_begin(0)
            values = {"loss": session.run(self.loss)}
            report.batch_end(0, values)
            return values

    log: list[Any] = []

    class Tests(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
            log.append(logs["loss"])

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            (kernel,) = self.model.get_weights()
            expected = float(np.mean((VAL_X @ kernel - VAL_Y) ** 2))
            assert logs["val_loss"] == pytest.approx(expected, rel=1e-5)

    _estimator([Tests()], tmp_path, validation=InMemory())
    assert len(log) == 6
    assert len(set(log)) == 6
