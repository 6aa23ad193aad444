"""Session loops, Estimator and towers, with callbacks, where v2 behaviour is off."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from callback_loops import STEPS, X, session_loop
from callback_recorder import callback_of
from estimator_models import bare_model_fn, eval_input, predict_input, train_input
from keras_graph import keras_graph_loop

import hookbridge as hb


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


def test_session_loop(keras: Any, tmp_path: Path) -> None:
    more = [
        keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9),
        keras.callbacks.TensorBoard(str(tmp_path / "board"), histogram_freq=1),
    ]
    saves = {"checkpoint_dir": str(tmp_path / "checkpoints")}
    loop = session_loop(
        [*guests(keras, tmp_path), *more], epochs=9, session_options=saves
    )
    check(tmp_path)
    assert len(loop.history["val_mae"]) == 3
    assert list((tmp_path / "board").rglob("events*"))


@pytest.mark.v1_mode("disable_v2_behavior")
def test_session_loop_with_a_keras_model(keras2: Any, tmp_path: Path) -> None:
    log, _, weights, *_ = guests(keras2, tmp_path)
    keras_graph_loop(keras2, [log, weights], epochs=3)
    check(tmp_path)


@pytest.mark.v1_mode("disable_v2_behavior")
def test_estimator_of_two_towers(keras: Any, tmp_path: Path) -> None:
    replicated = hb.replicate_model_fn(bare_model_fn, devices=["/cpu:0"] * 2)
    estimator = hb.estimator.Estimator(replicated, str(tmp_path / "model"))
    hooks = hb.as_hooks(guests(keras, tmp_path), steps_per_epoch=STEPS)
    estimator.train(train_input, hooks=hooks)
    check(tmp_path)
    seen: list[int] = []
    callback = callback_of(keras, on_test_batch_end=lambda c, n, logs: seen.append(n))
    estimator.evaluate(eval_input, steps=3, hooks=hb.as_hooks(callback))
    assert seen == [0, 1, 2]
    outputs: list[Any] = []
    callback = callback_of(
        keras, on_predict_batch_end=lambda c, n, logs: outputs.append(logs["outputs"])
    )
    found = estimator.predict(predict_input, hooks=hb.as_hooks(callback))
    predicted = [each["y"] for each in found]
    assert len(predicted) == len(X)
    np.testing.assert_array_equal(
        np.concatenate([each["y"] for each in outputs]), predicted
    )
