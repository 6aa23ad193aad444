"""Whether the first batch divides among the towers, found out before training."""

from __future__ import annotations

import contextlib
from typing import Any

from hookbridge.loops.towers.batches import check_divides


def check_first_batch(batch: Any, num_towers: int) -> None:
    """Raises if the batches that an input begins with do not divide.

    Where the graph does not tell the size, as after `.batch(8)` without
    `drop_remainder`, one batch is read, in a session of its own. What goes wrong
    there is no matter of this check: training will meet it and say it. Inputs that
    need threads in their session (queue runners) are not read.

    Args:
      batch: a (nested) structure of tensors `[N, ...]` of the default graph.
      num_towers: the towers that share it.

    Raises:
      errors.InvalidArgumentError: the batch does not divide among the towers.
    """
    import tensorflow as tf

    if num_towers == 1:
        return
    unknown = []
    for tensor in tf.nest.flatten(batch):
        if not isinstance(tensor, tf.Tensor):
            continue
        if tensor.shape.rank == 0:
            continue
        size = None if tensor.shape.rank is None else tensor.shape[0]
        if size is None:
            unknown.append(tensor)
        else:
            check_divides(int(size), num_towers)
    keys = tf.compat.v1.GraphKeys
    if unknown and not tf.compat.v1.get_collection(keys.QUEUE_RUNNERS):
        for size in _sizes_in_a_session(unknown):
            check_divides(size, num_towers)


def _sizes_in_a_session(tensors: list[Any]) -> list[int]:
    """The sizes of the first batch; none where it cannot be had."""
    import tensorflow as tf

    v1 = tf.compat.v1
    graph = tensors[0].graph
    initializers = graph.get_collection(v1.GraphKeys.TABLE_INITIALIZERS)
    first = [getattr(each, "op", each).name for each in initializers]
    # A copy without devices: those of a cluster are not in a session of our own.
    part = v1.graph_util.extract_sub_graph(
        graph.as_graph_def(), [*first, *(tensor.op.name for tensor in tensors)]
    )
    for node in part.node:
        node.device = ""
    with tf.Graph().as_default() as copy, contextlib.suppress(tf.errors.OpError):
        found = tf.graph_util.import_graph_def(
            part, name="", return_elements=[tensor.name for tensor in tensors]
        )
        sizes = [tf.shape(tensor)[0] for tensor in found]
        config = v1.ConfigProto(device_count={"GPU": 0})
        with v1.Session(graph=copy, config=config) as session:
            session.run([copy.get_operation_by_name(name) for name in first])
            return [int(size) for size in session.run(sizes)]
    return []
