"""The one list of hooks and callbacks that drives both loops."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

import hookbridge as hb
from hookbridge import compat, extras
from hookbridge.demo.activity_hook import ActivityHook
from hookbridge.demo.progress_callback import progress_callback


def keras_with_parameter_servers() -> Any:
    """`tf.keras` if it is Keras 2, else tf_keras: Keras 3 knows no parameter servers.

    Raises:
      errors.MissingExtraError: `tf.keras` is Keras 3 and tf_keras is not installed.
    """
    if not compat.is_keras3(keras_package(tf.keras)):
        return tf.keras
    return extras.load(
        "tf_keras",
        "The distributed demo, which trains with parameter servers,",
        way_out="`hookbridge demo --local` needs nothing.",
    )


def keras_package(keras: Any) -> Any:
    """The package behind `tf.keras`; that module itself may have no version."""
    return importlib.import_module(keras.Model.__module__.split(".")[0])


def demo_guests(keras: Any, directory: Path, emit: Callable[[str], None]) -> list[Any]:
    """Five hooks and five callbacks, in the order in which they see events.

    None of them was written with hookbridge in mind.
    """
    hooks, callbacks = tf.compat.v1.train, keras.callbacks
    (directory / "weights").mkdir(parents=True, exist_ok=True)
    return [
        hooks.LoggingTensorHook(
            {"loss": "loss:0", "learning_rate": "learning_rate:0"}, every_n_iter=200
        ),
        # A cluster runs each hook in every process, and these two write files.
        hb.set_role(
            hooks.StepCounterHook(
                every_n_steps=50, output_dir=str(directory / "step_counter")
            ),
            "chief",
        ),
        hb.set_role(
            hooks.CheckpointSaverHook(str(directory / "checkpoints"), save_steps=200),
            "chief",
        ),
        ActivityHook(),
        callbacks.ReduceLROnPlateau(monitor="val_loss", factor=0.3, patience=2),
        callbacks.EarlyStopping(
            monitor="val_loss",
            min_delta=0.002,
            patience=4,
            restore_best_weights=True,
        ),
        callbacks.ModelCheckpoint(
            str(directory / "weights" / "best.weights.h5"),
            monitor="val_loss",
            save_best_only=True,
            save_weights_only=True,
        ),
        callbacks.TensorBoard(str(directory / "tensorboard")),
        callbacks.CSVLogger(str(directory / "metrics.csv")),
        progress_callback(keras, emit),
    ]
