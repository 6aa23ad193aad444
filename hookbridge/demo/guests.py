"""The one list of guests that drives both loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from hookbridge.adapters.guests.kinds import is_hook
from hookbridge.demo.activity_hook import ActivityHook
from hookbridge.demo.progress_callback import ProgressCallback
from hookbridge.lifecycle import Guest as Kind


@dataclass(frozen=True)
class DemoGuest:
    """One guest of the list.

    Attributes:
      name: its class, for tables and pictures.
      guest: the hook or callback itself.
      writes: file or folder it writes, under the run's directory; None for none.
    """

    name: str
    guest: Any
    writes: str | None = None

    @property
    def kind(self) -> Kind:
        """`"hook"` or `"callback"`."""
        return "hook" if is_hook(self.guest) else "callback"


class GuestList:
    """Five hooks and five callbacks, none written with hookbridge in mind.

    The same objects serve both runs, except for those that write files: TF's and
    Keras's own take their directory when they are constructed, and each run has
    its own directory.
    """

    def __init__(self, emit: Callable[[str], None]) -> None:
        """Makes the guests that write nothing.

        Args:
          emit: where progress lines go.
        """
        keras = tf.keras.callbacks
        self.activity = ActivityHook()
        self.progress = ProgressCallback(emit)
        self._logging = tf.compat.v1.train.LoggingTensorHook(
            {"loss": "loss:0", "learning_rate": "learning_rate:0"}, every_n_iter=200
        )
        self._early_stopping = keras.EarlyStopping(
            monitor="val_loss", patience=5, restore_best_weights=True
        )
        self._reduce_lr = keras.ReduceLROnPlateau(
            monitor="val_loss", factor=0.3, patience=2
        )

    def for_run(self, directory: Path) -> list[DemoGuest]:
        """The list, in the order in which the guests see events.

        Args:
          directory: where this run's files go.
        """
        hooks = tf.compat.v1.train
        keras = tf.keras.callbacks
        weights = directory / "weights"
        weights.mkdir(parents=True, exist_ok=True)
        return [
            DemoGuest("LoggingTensorHook", self._logging),
            DemoGuest(
                "StepCounterHook",
                hooks.StepCounterHook(
                    every_n_steps=50, output_dir=str(directory / "step_counter")
                ),
                writes="step_counter",
            ),
            DemoGuest(
                "CheckpointSaverHook",
                hooks.CheckpointSaverHook(
                    str(directory / "checkpoints"), save_steps=200
                ),
                writes="checkpoints",
            ),
            DemoGuest("ActivityHook", self.activity),
            DemoGuest("ReduceLROnPlateau", self._reduce_lr),
            DemoGuest("EarlyStopping", self._early_stopping),
            DemoGuest(
                "ModelCheckpoint",
                keras.ModelCheckpoint(
                    str(weights / "best.weights.h5"),
                    monitor="val_loss",
                    save_best_only=True,
                    save_weights_only=True,
                ),
                writes="weights",
            ),
            DemoGuest(
                "TensorBoard",
                keras.TensorBoard(str(directory / "tensorboard")),
                writes="tensorboard",
            ),
            DemoGuest(
                "CSVLogger",
                keras.CSVLogger(str(directory / "metrics.csv")),
                writes="metrics.csv",
            ),
            DemoGuest("ProgressCallback", self.progress),
        ]
