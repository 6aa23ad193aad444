"""Replicates a piece of graph over several devices with shared variables."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

import tensorflow as tf

from hookbridge.adapters.session_graph.graph_ops import ancestors
from hookbridge.ground.patching import patched
from hookbridge.ground.protocols import Graph
from hookbridge.jobs.loops.towers.shared import SharedVariables


@contextlib.contextmanager
def own_collections() -> Iterator[dict[str, list[Any]]]:
    """Hide losses, update ops and summaries, and yield them by key.

    After the context these collections, and that of regularisation losses, which is
    not hidden, have the same values as before it.
    """
    graph = tf.compat.v1.get_default_graph()
    keys = tf.compat.v1.GraphKeys
    hidden = (keys.LOSSES, keys.UPDATE_OPS, keys.SUMMARIES)
    values_of = {
        key: graph.get_collection(key) for key in (*hidden, keys.REGULARIZATION_LOSSES)
    }
    for key in hidden:
        graph.clear_collection(key)
    try:
        yield values_of
    finally:
        for key, values in values_of.items():
            _replace(graph, key, values)


@contextlib.contextmanager
def tower_collections(
    index: int, shard: object, *, losses_are_added: bool
) -> Iterator[None]:
    """Let only tower `index` see what it adds to the collections.

    A model function that asks for "the" losses of the graph finds its own. Afterwards
    the collections hold the values of the first tower, so that summaries appear once.
    Update ops run once too: the other towers find none, since they would make their
    gradients wait for them, and the gradients of all towers are computed.

    Regularisation losses belong to the shared variables, which only the first tower
    creates. They stay visible in every tower, so that its loss is the same as without
    towers: but not one that depends on the first tower's examples (`shard`), and none
    if the losses of the towers are added, so that they count once.
    """
    if index == 0:
        yield
        return
    graph = tf.compat.v1.get_default_graph()
    keys = tf.compat.v1.GraphKeys
    inputs = {
        tensor.op
        for tensor in tf.nest.flatten(shard, expand_composites=True)
        if tensor is not None
    }
    get_collection = graph.get_collection

    def without_updates(name: str, scope: str | None = None) -> Any:
        return [] if name == keys.UPDATE_OPS else get_collection(name, scope)

    with own_collections() as hidden:
        shared = keys.REGULARIZATION_LOSSES
        losses = [] if losses_are_added else hidden[shared]
        _replace(graph, shared, [x for x in losses if not inputs & ancestors([x.op])])
        with patched(graph, get_collection=without_updates):
            yield


def _replace(graph: Graph, key: str, values: list[Any]) -> None:
    graph.clear_collection(key)
    for value in values:
        graph.add_to_collection(key, value)


Result = TypeVar("Result")

VARIABLE_DEVICE = "/device:CPU:0"


def build_towers(
    build: Callable[[Any, list[Any]], Result],
    shards: Sequence[Any],
    devices: Sequence[str],
    *,
    losses_are_added: bool,
) -> list[Result]:
    """Call `build` once for each tower, in the default graph.

    It gets the tower's shard, and a list of the local variables that it makes.

    Every tower's operations run on its own device. The first tower makes the variables,
    on the CPU; the others share them (`SharedVariables`, and `reuse=True` for
    `get_variable`). A `tf.device` of the caller or of `build` wins.
    """
    results = []
    variables = SharedVariables()
    for index, (shard, device) in enumerate(zip(shards, devices, strict=True)):
        # Entering the scope object resets the counts of unnamed scopes, so that the
        # second tower's unnamed layers find the first tower's variables.
        scope = tf.compat.v1.variable_scope(
            tf.compat.v1.get_variable_scope(),
            reuse=True if index else None,
            auxiliary_name_scope=False,
        )
        with (
            scope,
            # The first tower has the names of a single one, so that a hook which
            # fetches `"hidden/Relu:0"` works with any number of towers.
            tf.compat.v1.name_scope(f"tower_{index}") if index else nullcontext(),
            tf.compat.v1.device(
                tf.compat.v1.train.replica_device_setter(1, VARIABLE_DEVICE, device)
            ),
            tower_collections(index, shards[0], losses_are_added=losses_are_added),
            variables.scope(index) as local_variables,
        ):
            results.append(build(shard, local_variables))
    return results
