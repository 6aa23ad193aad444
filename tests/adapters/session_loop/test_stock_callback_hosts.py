"""Stock callbacks act in every host of callbacks as they do in `Model.fit`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from callback_loops import (
    BATCH,
    BIAS,
    KERNEL,
    STEPS,
    VAL_X,
    VAL_Y,
    Loop,
    X,
    Y,
    assert_same,
    fit,
)

import hookbridge as hb

estimators = importlib.import_module("hookbridge.estimator")
KERAS2 = "keras" if tf.__version__.startswith("2.15") else "tf_keras"
v1 = tf.compat.v1
EPOCHS = 40


def train_input() -> Any:
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(BATCH).repeat()


def val_input() -> Any:
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


# --- the hosts ------------------------------------------------------------------------


def _model_fn(features: Any, labels: Any, mode: str) -> Any:
    with v1.variable_scope("dense"):
        kernel = v1.get_variable("kernel", initializer=KERNEL)
        bias = v1.get_variable("bias", initializer=BIAS)
    return _spec(features @ kernel + bias, labels, mode)


MODEL: list[Any] = []


def _keras_model_fn(features: Any, labels: Any, mode: str) -> Any:
    keras = importlib.import_module(KERAS2)
    constant = keras.initializers.Constant
    model = keras.Sequential(
        [
            keras.layers.Dense(
                1,
                input_shape=(2,),
                kernel_initializer=constant(KERNEL),
                bias_initializer=constant(BIAS),
                name="dense",
            )
        ]
    )
    MODEL[:] = [model]
    return _spec(model(features), labels, mode)


def _spec(outputs: Any, labels: Any, mode: str) -> Any:
    error = outputs - labels
    mae = tf.reduce_mean(tf.abs(error), name="mae")
    loss = tf.reduce_mean(tf.square(error), name="loss")
    return estimators.EstimatorSpec(
        mode,
        loss=loss,
        train_op=v1.train.GradientDescentOptimizer(0.1).minimize(
            loss, global_step=v1.train.get_global_step()
        ),
        eval_metric_ops={"mae": v1.metrics.mean(mae)},
    )


def _estimator(model_fn: Any, callbacks: list[Any], folder: Path) -> Any:
    # A checkpoint at every step: none may lack what callbacks do in that step.
    config = estimators.RunConfig(
        str(folder / "model"), save_checkpoints_steps=1, save_summary_steps=None
    )
    estimator = estimators.Estimator(model_fn, config=config)
    hooks = hb.as_hooks(
        callbacks,
        steps_per_epoch=STEPS,
        epochs=EPOCHS,
        logs={"mae": "mae:0"},
        model=(lambda: MODEL[0]) if model_fn is _keras_model_fn else None,
        validation=(estimator, estimators.EvalSpec(val_input, steps=None)),
    )
    estimator.train(train_input, hooks=hooks)
    # Only the last checkpoint remains of the training.
    return estimator.get_variable_value


HOSTS: dict[str, Callable[[list[Any], Path], Any]] = {
    "estimator": lambda c, d: _estimator(_model_fn, c, d),
    "estimator, Keras model": lambda c, d: _estimator(_keras_model_fn, c, d),
}


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Loop, Path]]:
    """Results of `Model.fit` by Keras; the first test that needs one adds it."""
    return {}


@pytest.mark.slow
@pytest.mark.parametrize("host", HOSTS)
def test_same_as_in_fit(
    keras: Any,
    host: str,
    native: dict[str, tuple[Loop, Path]],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    if keras.__name__ not in native:
        place = tmp_path_factory.mktemp("fit")
        native[keras.__name__] = fit(keras, guests(keras, place), epochs=EPOCHS), place
    expected, place = native[keras.__name__]
    assert len(expected.history["loss"]) < EPOCHS
    history = keras.callbacks.History()
    value = HOSTS[host]([*guests(keras, tmp_path), history], tmp_path)
    found = Loop(
        history.history,
        [value("dense/kernel"), value("dense/bias")],
        int(value("global_step")),
    )
    assert_same(found, expected)
    for pattern in ("*.h5", "log.csv"):
        names = [sorted(p.name for p in d.glob(pattern)) for d in (tmp_path, place)]
        assert names[0] == names[1] != []
