"""The global step of a Keras model under `fit`."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import tensorflow as tf

from hookbridge.adapters.keras_model.optimizers import optimizer_of, steps_counted
from hookbridge.adapters.keras_model.variables import ModelVariable, host_variable
from hookbridge.ground.memory import Fact
from hookbridge.ground.protocols import KerasModel


class _Last(NamedTuple):
    """The count at the end of a run, with the optimizer and its `iterations` then."""

    value: int
    iterations: int
    optimizer: Any  # a weak reference, or None


# One variable per model, so that functions traced with it in one run serve the next.
_VARIABLE = Fact[ModelVariable]("model", "global step")
_LAST = Fact[_Last]("model", "count after its last run")


def note(model: KerasModel, value: int | None) -> None:
    """Note where the next run of `model` begins.

    Args:
      model: the model.
      value: the global step; None for what its optimizer has counted.
    """
    _LAST.pop(model)
    if value is not None:
        optimizer = _optimizer_reference(model)
        _LAST.put(model, _Last(value, steps_counted(model), optimizer))


def _optimizer_reference(model: KerasModel) -> Any:
    optimizer = optimizer_of(model)
    return None if optimizer is None else weakref.ref(optimizer)


def _count(model: KerasModel) -> int:
    iterations, last_count = steps_counted(model), _LAST.get(model)
    if last_count is None or last_count.optimizer != _optimizer_reference(model):
        return iterations
    moved = iterations - last_count.iterations
    # `iterations` is smaller than before when a checkpoint was restored.
    return last_count.value + moved if moved >= 0 else iterations


def _variable() -> ModelVariable:
    eager = host_variable(lambda: tf.constant(0, tf.int64), "global_step")
    return ModelVariable(eager, "global_step", trainable=False, local=False)


class GlobalStep:
    """Counts completed steps on the host, with a variable for checkpoints.

    `optimizer.iterations` also counts the call that meets the end of the data. The
    count starts from it, or from what an earlier run with hooks and this optimizer
    left. The variable is written before something reads it, so that other steps pay
    nothing.
    """

    def __init__(self, model: KerasModel) -> None:
        self._model = model
        self.value: int = _count(model)
        self.variable: ModelVariable = _VARIABLE.get_or_put(model, _variable)
        self._pushed: int | None = None

    def add(self, steps: int) -> None:
        """Count completed steps."""
        self.value += steps

    def push(self) -> None:
        """Write the count to the variable if the variable is behind."""
        if self._pushed != self.value:
            self.variable.eager.assign(self.value)
            self._pushed = self.value

    def pull(self) -> None:
        """Take the count from the variable after something wrote to it."""
        self.value = self._pushed = int(self.variable.eager.numpy())

    def remember(self) -> None:
        """Keep the count for the model's next run."""
        note(self._model, self.value)

    def recall(self) -> None:
        """Take the count that inner runs have left since `remember`."""
        self.value = _count(self._model)
        self._pushed = None
