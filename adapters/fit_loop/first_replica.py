"""The replica whose tensors hooks get: the first one of this process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from hookbridge.adapters.keras_model.structure import trains_in_several_processes
from hookbridge.ground import compat, patching
from hookbridge.ground.protocols import AnyFunction, KerasModel


def is_first(model: KerasModel, replica: int | tf.Tensor) -> bool:
    """Return whether `replica`, a number or a tensor, is the first of this process."""
    number = tf.get_static_value(replica) if tf.is_tensor(replica) else replica
    if number is None:
        return True
    if trains_in_several_processes(model):
        number %= len(model.distribute_strategy.extended.worker_devices)
    return int(number) == 0


@contextlib.contextmanager
def keep_taps_out_of_reduction(
    model: KerasModel, split: AnyFunction, join: AnyFunction
) -> Iterator[None]:
    """Keep tapped tensors out of Keras's sum over all processes of a `fit`."""
    # That sum would be one more collective operation, which a process without the hook
    # does not take part in.
    if not trains_in_several_processes(model):
        yield
        return
    key = "tf_keras_training" if compat.tf_version() > (2, 15) else "keras_training"
    module = compat.private(key)
    reduce = module.reduce_per_replica

    def reduce_outputs(values: object, *args: object, **kwargs: object) -> Any:
        outputs, tapped = split(values)
        return join(reduce(outputs, *args, **kwargs), tapped)

    with patching.patched(module, reduce_per_replica=reduce_outputs):
        yield
