"""Replicates a piece of graph over several devices with shared variables."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hookbridge.loops.devices import device_setter
from hookbridge.loops.shared_variables import SharedVariables
from hookbridge.loops.tower_collections import tower_collections

Result = TypeVar("Result")

VARIABLE_DEVICE = "/device:CPU:0"


def tower_name_scope(index: int) -> contextlib.AbstractContextManager[Any]:
    """The name scope of a tower: none for the first, then `tower_1`, `tower_2`.

    The first tower keeps the names it would have alone, as in `MirroredStrategy`,
    so that a hook that fetches `"hidden/Relu:0"` works with any number of towers.
    """
    import tensorflow as tf

    if index == 0:  # a scope named None would leave the caller's scope
        return contextlib.nullcontext()
    scope: contextlib.AbstractContextManager[Any]
    scope = tf.compat.v1.name_scope(f"tower_{index}")
    return scope


def build_towers(
    build: Callable[[int, Any], Result],
    shards: Sequence[Any],
    devices: Sequence[str],
    *,
    variable_device: str = VARIABLE_DEVICE,
) -> list[Result]:
    """Calls `build` once for each tower, in the default graph.

    Every tower's operations run on its own device. The variables are made by the
    first tower, on `variable_device`, and shared: `tf.compat.v1.get_variable` is
    under `reuse=True` in the others, and other variables go by order of creation.

    Args:
      build: called as `build(index, shard)`.
      shards: what each tower gets, as `split_batch` makes it.
      devices: the device of each tower.
      variable_device: where variables live. What the caller or `build` asks for
        with `tf.device` wins, so that a parameter-server placement stays.

    Returns:
      What `build` returned for each tower.

    Raises:
      errors.InvalidArgumentError: a tower makes other variables than the first.
    """
    import tensorflow as tf

    results = []
    variables = SharedVariables()
    for index, (shard, device) in enumerate(zip(shards, devices, strict=True)):
        # By scope object, and without a name scope of its own: the object brings
        # back the counts of unnamed scopes, so that the second tower's unnamed
        # layers find the first tower's variables.
        scope = tf.compat.v1.variable_scope(
            tf.compat.v1.get_variable_scope(),
            reuse=True if index else None,
            auxiliary_name_scope=False,
        )
        with (
            scope,
            tower_name_scope(index),
            tf.compat.v1.device(device_setter(device, variable_device)),
            tower_collections(index, shards[0]),
            variables.scope(index),
        ):
            results.append(build(index, shard))
    return results
