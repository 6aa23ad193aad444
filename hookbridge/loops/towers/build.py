"""Replicates a piece of graph over several devices with shared variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

import tensorflow as tf

from hookbridge.loops.towers.devices import device_setter
from hookbridge.loops.towers.graph_collections import tower_collections
from hookbridge.loops.towers.updates import update_once
from hookbridge.loops.towers.variables import SharedVariables

Result = TypeVar("Result")

VARIABLE_DEVICE = "/device:CPU:0"


def build_towers(
    build: Callable[[int, Any], Result],
    shards: Sequence[Any],
    devices: Sequence[str],
    *,
    variable_device: str,
    outputs: Callable[[Result], Any],
    losses_are_added: bool,
) -> list[Result]:
    """Calls `build` once for each tower, in the default graph.

    Every tower's operations run on its own device. The first tower makes the variables,
    on `variable_device`; the others share them. In the others
    `tf.compat.v1.get_variable` has `reuse=True`, and all other variables are matched by
    the order of their creation. A `tf.device` of the caller or of `build` wins.

    `outputs` returns, for a tower's result, the tensors that the steps compute: what
    they wait for is updated once (`update_once`).
    """
    results = []
    graph = tf.compat.v1.get_default_graph()
    first: list[Any] = []
    variables = SharedVariables()
    for index, (shard, device) in enumerate(zip(shards, devices, strict=True)):
        # Entering the scope object resets the counts of unnamed scopes, so that the
        # second tower's unnamed layers find the first tower's variables.
        scope = tf.compat.v1.variable_scope(
            tf.compat.v1.get_variable_scope(),
            reuse=True if index else None,
            auxiliary_name_scope=False,
        )
        before = len(graph.get_operations())
        with (
            scope,
            # The first tower has the names of a single one, so that a hook which
            # fetches `"hidden/Relu:0"` works with any number of towers.
            tf.compat.v1.name_scope(f"tower_{index}") if index else nullcontext(),
            tf.compat.v1.device(device_setter(device, variable_device)),
            tower_collections(index, shards[0], losses_are_added=losses_are_added),
            variables.scope(index),
        ):
            results.append(build(index, shard))
        own = graph.get_operations()[before:]
        if index == 0:
            first = own
        else:
            update_once(first, own, outputs(results[-1]))
    return results
