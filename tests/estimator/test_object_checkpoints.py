"""Estimators of Keras models with object-based checkpoints, which are the default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb

X = np.random.RandomState(0).randn(24, 2).astype("float32")
Y = (X @ np.array([[1.0], [2.0]], "float32")).astype("float32")
STEPS = 3


def train_input() -> Any:
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(8).repeat()


def eval_input() -> Any:
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)


def keras_model(keras: Any) -> Any:
    keras.backend.clear_session()
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,), name="dense")])
    model.compile(keras.optimizers.legacy.SGD(0.05), "mse", metrics=["mae"])
    return model


@pytest.mark.slow
@pytest.mark.parametrize("given", ["to_model", "to_train"])
def test_state_survives_a_restart(keras2: Any, tmp_path: Path, given: str) -> None:
    """In `to_train`, the Estimator is Keras's own, which knows no callbacks."""

    def train(**until: int) -> Any:
        stopping = keras2.callbacks.EarlyStopping("loss", patience=3, min_delta=1e6)
        options: dict[str, Any] = {"steps_per_epoch": STEPS}
        if given == "to_model":
            options["callbacks"] = stopping
        estimator = hb.estimator.model_to_estimator(
            keras_model(keras2), model_dir=str(tmp_path), **options
        )
        hooks = []
        if given == "to_train":
            hooks = hb.as_hooks(stopping, steps_per_epoch=STEPS)
        estimator.train(train_input, hooks=hooks, **until)
        return estimator

    train(steps=2 * STEPS)
    assert (tmp_path / f"model.ckpt-{2 * STEPS}.hookbridge.json").exists()
    estimator = train(steps=100)
    # The first epoch is the best; the patience of three epochs spans the restart.
    assert estimator.evaluate(eval_input)["global_step"] == 4 * STEPS


@pytest.mark.slow
def test_validation_by_the_estimator(keras2: Any, tmp_path: Path) -> None:
    history = keras2.callbacks.History()
    estimator = hb.estimator.model_to_estimator(
        keras_model(keras2), model_dir=str(tmp_path)
    )
    hooks = hb.as_hooks(
        history,
        steps_per_epoch=STEPS,
        epochs=2,
        validation=(estimator, hb.estimator.EvalSpec(eval_input, steps=None)),
    )
    estimator.train(train_input, hooks=hooks)
    assert list(history.history) == ["loss", "val_loss", "val_mae"]
    result = estimator.evaluate(eval_input)
    for key in ("loss", "mae"):
        assert history.history[f"val_{key}"][-1] == pytest.approx(float(result[key]))
    # The newest checkpoint is still one of the loop, not of the validation.
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith(f"ckpt-{2 * STEPS}")
