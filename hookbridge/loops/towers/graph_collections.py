"""Keeps the graph collections of one tower out of the others' sight."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from hookbridge.patching import patched


@contextlib.contextmanager
def tower_collections(
    index: int, shard: Any, *, losses_are_added: bool = False
) -> Iterator[None]:
    """What tower `index` adds to the collections, seen by itself only.

    A tower's model function may ask for "the" losses of the graph
    (`tf.compat.v1.losses.get_total_loss`). It must find its own. After the context
    the collections hold what the first tower (and the code before it) put there, so
    that summaries appear once.

    Update ops run once too, those of the first tower. The model functions of the
    others find no `UPDATE_OPS` at all: they usually make their gradients wait for
    them, and all towers' gradients are computed.

    Regularisation losses belong to the shared variables, which only the first
    tower creates: those stay visible in every tower, so that each tower's loss is
    what it would be alone. A regularisation loss that depends on the first
    tower's examples (activity regularisation) does not.

    Args:
      index: the tower's position; the first tower is 0.
      shard: the structure of tensors that the first tower's examples come in.
        Unused for the first tower.
      losses_are_added: whether the loss of the step is the sum of the towers'
        losses, and not their mean.
    """
    import tensorflow as tf

    graph = tf.compat.v1.get_default_graph()
    keys = tf.compat.v1.GraphKeys
    own = (keys.LOSSES, keys.UPDATE_OPS, keys.SUMMARIES)
    if index == 0:
        yield
        return
    shared = keys.REGULARIZATION_LOSSES
    kept = {key: graph.get_collection(key) for key in (*own, shared)}
    inputs = {tensor.op for tensor in tf.nest.flatten(shard) if tensor is not None}
    for key in own:
        graph.clear_collection(key)
    seen = [] if losses_are_added else kept[shared]
    _replace(graph, shared, [x for x in seen if not _reaches(x, inputs)])
    get_collection = graph.get_collection

    def without_updates(name: str, scope: str | None = None) -> Any:
        return [] if name == keys.UPDATE_OPS else get_collection(name, scope)

    try:
        with patched(graph, get_collection=without_updates):
            yield
    finally:
        for key, values in kept.items():
            _replace(graph, key, values)


def _replace(graph: Any, key: str, values: list[Any]) -> None:
    graph.clear_collection(key)
    for value in values:
        graph.add_to_collection(key, value)


def _reaches(tensor: Any, targets: set[Any]) -> bool:
    """Whether `tensor` is computed from any of the operations `targets`."""
    seen: set[Any] = set()
    todo = [tensor.op]
    while todo:
        op = todo.pop()
        if op in targets:
            return True
        if op not in seen:
            seen.add(op)
            todo.extend(x.op for x in op.inputs)
    return False
