"""The one list of three hooks and three callbacks that drives both clusters."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

import hookbridge as hb
from hookbridge import compat, errors
from hookbridge.demo.activity_hook import ActivityHook
from hookbridge.demo.guests import DemoGuest
from hookbridge.demo.progress_callback import progress_callback


def keras_with_parameter_servers() -> Any:
    """`tf.keras` if it is Keras 2, else tf_keras: Keras 3 has no such training.

    Raises:
      errors.MissingExtraError: it is Keras 3 and tf_keras is not installed.
    """
    # The package behind `tf.keras`, which does not always tell its version.
    package = importlib.import_module(tf.keras.Model.__module__.split(".")[0])
    if not compat.is_keras3(package):
        return tf.keras
    if importlib.util.find_spec("tf_keras") is None:
        raise errors.MissingExtraError(
            "The distributed demo needs Keras 2, since Keras 3 has no training with "
            "parameter servers. `pip install hookbridge[keras2]`, or run "
            "`hookbridge demo --local`."
        )
    return importlib.import_module("tf_keras")


def cluster_guests(
    keras: Any, directory: Path, emit: Callable[[str], None]
) -> list[DemoGuest]:
    """The list, in the order in which the guests see events.

    Args:
      keras: the flavour of the callbacks.
      directory: where this run's files go.
      emit: where progress lines go.
    """
    hooks = tf.compat.v1.train
    directory.mkdir(parents=True, exist_ok=True)
    return [
        DemoGuest(
            "LoggingTensorHook",
            hooks.LoggingTensorHook(
                {"loss": "loss:0", "learning_rate": "learning_rate:0"}, every_n_iter=200
            ),
        ),
        DemoGuest(
            "CheckpointSaverHook",
            hb.set_role(
                hooks.CheckpointSaverHook(
                    str(directory / "checkpoints"), save_steps=200
                ),
                "chief",
            ),
            writes="checkpoints",
        ),
        DemoGuest("ActivityHook", ActivityHook()),
        DemoGuest(
            "EarlyStopping",
            keras.callbacks.EarlyStopping(
                monitor="val_loss",
                min_delta=0.01,
                patience=3,
                restore_best_weights=True,
            ),
        ),
        DemoGuest(
            "CSVLogger",
            keras.callbacks.CSVLogger(str(directory / "metrics.csv")),
            writes="metrics.csv",
        ),
        DemoGuest("ProgressCallback", progress_callback(keras, emit)),
    ]
