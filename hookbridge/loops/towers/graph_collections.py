"""Hides the graph collections of one tower from the other towers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from hookbridge.adapters.session_graph.ops import ancestors
from hookbridge.patching import patched


@contextlib.contextmanager
def own_collections() -> Iterator[dict[str, list[Any]]]:
    """A context that hides losses, update ops and summaries, which it yields by key.

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
    index: int, shard: Any, *, losses_are_added: bool
) -> Iterator[None]:
    """A context in which only tower `index` sees what it adds to the collections.

    A tower's model function may ask for "the" losses of the graph
    (`tf.compat.v1.losses.get_total_loss`). It must find only its own losses. After the
    context the collections hold the values of the first tower (and of the code before
    it), so that summaries appear once.

    Update ops run once too: those of the first tower. In the other towers the model
    function finds no `UPDATE_OPS`. Otherwise it would usually make its gradients wait
    for them, and the gradients of all towers are computed.

    Regularisation losses belong to the shared variables, which only the first tower
    creates. They stay visible in every tower, so that each tower's loss is the same as
    without towers. A regularisation loss that depends on the first tower's examples
    (`shard`, as in activity regularisation) does not stay visible. None does if the
    losses of the towers are added (`losses_are_added`), so that they count once.
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


def _replace(graph: Any, key: str, values: list[Any]) -> None:
    graph.clear_collection(key)
    for value in values:
        graph.add_to_collection(key, value)
