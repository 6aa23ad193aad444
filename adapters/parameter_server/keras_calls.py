"""What Keras does otherwise during a `fit` under `ParameterServerStrategy`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from hookbridge.adapters.keras_model.structure import steps_per_execution_variable
from hookbridge.ground import compat
from hookbridge.ground.patching import MISSING, patched
from hookbridge.ground.protocols import KerasModel, Logs


def cached_reads(model: KerasModel) -> AbstractContextManager[None]:
    """Answer the reads of a model's `steps_per_execution` from memory."""
    # Keras reads it before each step. The variable is on a server, and the coordinator
    # would wait for it in every step.
    variable = steps_per_execution_variable(model)
    if variable is None or getattr(model, "autotune_steps_per_execution", False):
        return nullcontext()
    if not callable(getattr(variable, "numpy", None)) or "numpy" in vars(variable):
        return nullcontext()
    read, assign = variable.numpy, variable.assign
    value: Any = MISSING

    def numpy() -> Any:
        nonlocal value
        if value is MISSING:
            value = read()
        return value

    def assign_and_forget(*args: object, **kwargs: object) -> Any:
        nonlocal value
        value = MISSING
        return assign(*args, **kwargs)

    return patched(variable, numpy=numpy, assign=assign_and_forget)


def no_empty_epochs(
    model: KerasModel, delivered: Callable[[], int]
) -> AbstractContextManager[None]:
    """Keep `on_epoch_end` from a model's callbacks after an epoch without steps.

    At the end of the data, or when a step is given up, Keras would report metrics that
    nobody has updated: a loss of 0, which callbacks take for the best one. `delivered`
    delivers the steps that are due, and gives the number of all.
    """
    keras = next(k for k in compat.keras_flavours() if isinstance(model, k.Model))
    original = keras.callbacks.CallbackList.on_epoch_end
    before = 0

    def on_epoch_end(self: Any, epoch: int, logs: Logs = None) -> None:
        nonlocal before
        if self.model is model:
            now = delivered()
            if now == before:
                return
            before = now
        original(self, epoch, logs)

    return patched(keras.callbacks.CallbackList, on_epoch_end=on_epoch_end)
