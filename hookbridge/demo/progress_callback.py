"""A user's own Keras callback, written only for `Model.fit`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any


class EpochLines:
    """Prints one line for each epoch and keeps the epochs' logs.

    Attributes:
      history: the logs of each epoch of the last run.
    """

    model: Any
    params: Any

    def __init__(self, emit: Callable[[str], None]) -> None:
        """Initialises the callback."""
        super().__init__()
        self._emit = emit
        self.history: list[dict[str, float]] = []

    def on_train_begin(self, logs: Any = None) -> None:
        self.history = []
        self._steps = 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._start = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._steps += 1

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float] | None = None) -> None:
        logs = {key: float(value) for key, value in (logs or {}).items()}
        # Keras 2 adds the learning rate as `lr`, Keras 3 as `learning_rate`.
        rate = float(self.model.optimizer.learning_rate)
        self.history.append({**logs, "learning_rate": rate})
        values = "  ".join(
            f"{key} {logs[key]:.4f}"
            for key in ("loss", "accuracy", "val_loss", "val_accuracy")
            if key in logs
        )
        secs = time.perf_counter() - self._start
        self._emit(
            f"epoch {epoch + 1:>3}/{self.params.get('epochs')}  step "
            f"{self._steps:>5}  {values}  learning_rate {rate:.2g}  {secs:.1f} s"
        )


def progress_callback(keras: Any, emit: Callable[[str], None]) -> Any:
    """The callback for any Keras flavour."""
    bases = (EpochLines, keras.callbacks.Callback)
    return type("ProgressCallback", bases, {})(emit)
