"""The global step of a Keras model under `fit`."""

from __future__ import annotations

import weakref
from typing import Any

import tensorflow as tf

from hookbridge import compat
from hookbridge.adapters.live_variables import ModelVariable, as_int

# Per model: the count that the last run left and `iterations` at that moment.
_LAST: weakref.WeakKeyDictionary[Any, tuple[int, int]] = weakref.WeakKeyDictionary()


class GlobalStep:
    """Counts completed steps on the host, with a variable for checkpoints.

    `optimizer.iterations` will not do: the call that meets the end of the data
    increments it too. The count starts from `iterations`, unless an earlier run
    with hooks left a better one. The variable is written only before something
    reads it, so a step that nobody asks costs nothing.

    Args:
      model: the Keras model.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        iterations = self._iterations()
        value, then = _LAST.get(model, (iterations, iterations))
        self.value = value + (iterations - then)
        # A graph of its own keeps the variable out of the strategy's scope: it is
        # one number on the host, not one per replica.
        with tf.Graph().as_default(), compat.private("eager_mode")():
            eager = tf.Variable(
                self.value, dtype=tf.int64, trainable=False, name="global_step"
            )
        self.variable = ModelVariable(
            eager, "global_step", trainable=False, local=False
        )
        self._pushed = self.value

    def _iterations(self) -> int:
        optimizer = getattr(self._model, "optimizer", None)
        iterations = getattr(optimizer, "iterations", None)
        return 0 if iterations is None else as_int(iterations)

    def add(self, steps: int) -> None:
        """Counts completed steps."""
        self.value += steps

    def push(self) -> None:
        """Writes the count to the variable if it is behind."""
        if self._pushed != self.value:
            self.variable.eager.assign(self.value)
            self._pushed = self.value

    def pull(self) -> None:
        """Takes the count from the variable after something wrote to it."""
        self.value = self._pushed = int(self.variable.eager.numpy())

    def remember(self) -> None:
        """Keeps the count for the model's next run."""
        _LAST[self._model] = (self.value, self._iterations())
