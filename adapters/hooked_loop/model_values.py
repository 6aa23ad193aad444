"""The values of a model's variables at a moment, to be compared or set again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge.adapters.guests.kinds import keras_behind
from hookbridge.adapters.keras_model import variables
from hookbridge.ground.protocols import KerasModel


class ModelValues:
    """The values of a model's variables at a moment; equal to others if all are."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ModelValues)
            and len(self._values) == len(other._values)
            and all(map(_are_equal, self._values, other._values))
        )


def _are_equal(value: object, other_value: object) -> bool:
    """Return whether two values are the same, NaN at the same places included."""
    a, b = np.asarray(value), np.asarray(other_value)
    return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


def restorer_of_values(model: KerasModel) -> Callable[[], None]:
    """Return a function that sets the model's variables back to what they are now.

    Those of its optimizers belong to them. Metrics are left as they are: Keras resets
    them in each epoch.
    """
    lasting = [v for v in variables.model_variables(model) if not v.local]
    saved = [v.eager for v in lasting if not v.is_aggregated]
    if tf.executing_eagerly():
        values = [variables.components(variable)[0].numpy() for variable in saved]
    else:
        values = keras_behind(model).backend.batch_get_value(saved)
    pairs = list(zip(saved, values, strict=True))
    return lambda: variables.assign_all(model, pairs)
