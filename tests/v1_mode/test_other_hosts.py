"""Session loops, Estimator and towers, with callbacks, where v2 behaviour is off."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from callback_recorder import callback_of

import hookbridge as hb

v1 = tf.compat.v1
X = np.random.RandomState(0).rand(64, 4).astype("f")
Y = X @ np.ones([4, 1], "f")


def guests(keras: Any, folder: Path) -> list[Any]:
    return [
        keras.callbacks.CSVLogger(str(folder / "log.csv")),
        keras.callbacks.EarlyStopping("loss", min_delta=1e9, patience=2),
        keras.callbacks.ModelCheckpoint(
            str(folder / "w.weights.h5"), save_weights_only=True
        ),
        keras.callbacks.TerminateOnNaN(),
        keras.callbacks.ReduceLROnPlateau("loss", patience=1, min_delta=1e9),
    ]


def check(folder: Path, epochs: int = 3) -> None:
    """Checks what the callbacks above wrote, and at which epoch they stopped."""
    with open(folder / "log.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == [str(i) for i in range(epochs)]
    assert float(rows[-1]["loss"]) < float(rows[0]["loss"])
    assert (folder / "w.weights.h5").exists()


def regression(features: Any, labels: Any) -> tuple[Any, Any]:
    weights = v1.get_variable("w", [4, 1], initializer=v1.zeros_initializer())
    bias = v1.get_variable("b", [1], initializer=v1.zeros_initializer())
    loss = tf.reduce_mean(tf.square(features @ weights + bias - labels), name="loss")
    rate = v1.get_variable("rate", [], initializer=v1.constant_initializer(0.01))
    step = v1.train.get_or_create_global_step()
    optimizer = v1.train.GradientDescentOptimizer(rate)
    return loss, optimizer.minimize(loss, step)


def model_fn(features: Any, labels: Any = None, mode: Any = None) -> Any:
    outputs = {"sum": tf.reduce_sum(features, axis=1)}
    if labels is None:
        return hb.estimator.EstimatorSpec(mode, outputs)
    loss, train = regression(features, labels)
    return hb.estimator.EstimatorSpec(mode, outputs, loss, train)


def input_fn() -> Any:
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(16).repeat()


def test_session_loop(keras: Any, tmp_path: Path) -> None:
    seen: list[dict[str, float]] = []
    with tf.Graph().as_default():
        _, train = regression(tf.constant(X), tf.constant(Y))
        more = [
            keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9),
            keras.callbacks.TensorBoard(str(tmp_path / "board"), histogram_freq=1),
            keras.callbacks.LambdaCallback(
                on_epoch_end=lambda epoch, logs: seen.append(dict(logs))
            ),
        ]
        hooks = hb.as_hooks(
            [*guests(keras, tmp_path), *more],
            steps_per_epoch=4,
            validation=lambda: {"mae": 2.0},
        )
        with v1.train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path / "checkpoints"), hooks=hooks
        ) as session:
            while not session.should_stop():
                session.run(train)
    check(tmp_path)
    assert [each["val_mae"] for each in seen] == [2.0] * 3
    assert list((tmp_path / "board").rglob("events*"))


@pytest.mark.v1_mode("disable_v2_behavior")
def test_session_loop_with_a_keras_model(keras2: Any, tmp_path: Path) -> None:
    with tf.Graph().as_default():
        model = keras2.Sequential([keras2.layers.Dense(1, input_shape=(4,))])
        loss = tf.reduce_mean(tf.square(model(X) - Y), name="loss")
        step = v1.train.get_or_create_global_step()
        train = v1.train.GradientDescentOptimizer(0.01).minimize(loss, step)
        log, _, weights, *_ = guests(keras2, tmp_path)
        hooks = hb.as_hooks([log, weights], steps_per_epoch=4, epochs=3, model=model)
        with v1.train.MonitoredSession(hooks=hooks) as session:
            while not session.should_stop():
                session.run(train)
    check(tmp_path)


@pytest.mark.v1_mode("disable_v2_behavior")
def test_estimator_of_two_towers(keras: Any, tmp_path: Path) -> None:
    replicated = hb.replicate_model_fn(model_fn, devices=["/cpu:0"] * 2)
    estimator = hb.estimator.Estimator(replicated, str(tmp_path / "model"))
    hooks = hb.as_hooks(guests(keras, tmp_path), steps_per_epoch=4)
    estimator.train(input_fn, hooks=hooks)
    check(tmp_path)
    seen: list[int] = []
    callback = callback_of(keras, on_test_batch_end=lambda c, n, logs: seen.append(n))
    estimator.evaluate(input_fn, steps=3, hooks=hb.as_hooks(callback))
    assert seen == [0, 1, 2]
    outputs: list[Any] = []
    callback = callback_of(
        keras, on_predict_batch_end=lambda c, n, logs: outputs.append(logs["outputs"])
    )
    given = estimator.predict(input_fn, hooks=hb.as_hooks(callback))
    predicted = [next(given)["sum"] for _ in range(32)]
    given.close()
    np.testing.assert_array_equal(
        np.concatenate([each["sum"] for each in outputs]), predicted
    )
