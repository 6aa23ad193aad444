"""Epochs in which no step was delivered end without `on_epoch_end`.

At the end of the data, or when a step is given up, Keras ends the epoch with the
results of metrics that nobody has updated: a loss of 0, which callbacks would take for
the best one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hookbridge import compat, patching


def skipped(model: Any, delivered: Callable[[], int]) -> patching.InstanceMethods:
    """Keeps `on_epoch_end` from a model's callbacks after an epoch without steps."""
    keras = next(k for k in compat.keras_flavours() if isinstance(model, k.Model))
    original = keras.callbacks.CallbackList.on_epoch_end
    before = 0

    def on_epoch_end(self: Any, epoch: int, logs: Any = None) -> None:
        nonlocal before
        if self.model is model:
            now = delivered()
            if now == before:
                return
            before = now
        original(self, epoch, logs)

    methods = patching.InstanceMethods(
        keras.callbacks.CallbackList, {"on_epoch_end": on_epoch_end}
    )
    methods.install()
    return methods
