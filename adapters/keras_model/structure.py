"""The layers and outputs of a Keras model, its processes and the steps of a call."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge.adapters.keras_model.optimizers import as_int
from hookbridge.ground.protocols import KerasModel


def layers_of(model: KerasModel) -> list[Any]:
    """Return the layers of a model at every depth, without the model itself."""
    flatten = getattr(model, "_flatten_layers", None)
    layers = flatten() if callable(flatten) else getattr(model, "layers", ())
    return [layer for layer in layers if layer is not model]


def output_names(model: KerasModel) -> list[str]:
    """Return the model's names of its outputs; none if it does not name them."""
    return [str(name) for name in getattr(model, "output_names", None) or ()]


def steps_per_execution_variable(model: KerasModel) -> Any:
    """Return what holds the number of steps of a call: Keras 2 has a variable."""
    of_keras2 = getattr(model, "_steps_per_execution", None)
    if of_keras2 is not None:
        return of_keras2
    return getattr(model, "steps_per_execution", None)


def steps_per_execution(model: KerasModel) -> int:
    """Return how many steps a call of the model's function makes."""
    steps = steps_per_execution_variable(model)
    return 1 if steps is None else as_int(steps)


def trains_in_several_processes(model: KerasModel) -> bool:
    """Return whether a model's replicas are in several processes with a `fit` each."""
    strategy = getattr(model, "distribute_strategy", None)
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy) and (
        strategy.num_replicas_in_sync > len(strategy.extended.worker_devices)
    )
