"""The values of a model's variables, to be set again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge.adapters.guests.kinds import keras_behind
from hookbridge.adapters.live_session import live_variables
from hookbridge.ground.protocols import KerasModel


def going_back(model: KerasModel) -> Callable[[], None]:
    """What gives the variables of a model, its optimizers' too, their present values.

    Metrics are left as they are: Keras begins them anew with each epoch.
    """
    kept = [v for v in live_variables.model_variables(model) if not v.local]
    own = [v.eager for v in kept if not v.is_aggregated]
    if not tf.executing_eagerly():
        backend: Any = keras_behind(model).backend
        before = backend.batch_get_value(own)
        return lambda: backend.batch_set_value(list(zip(own, before, strict=True)))
    firsts = [live_variables.components(each)[0] for each in own]
    values = [first.numpy() for first in firsts]

    def go_back() -> None:
        for variable, first, value in zip(own, firsts, values, strict=True):
            if not np.array_equal(first.numpy(), value):
                variable.assign(value)

    return go_back
