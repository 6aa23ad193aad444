"""Brings a `tf.data.Dataset` into the graph of a training session."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.arguments import check_divides
from hookbridge.loops.towers.batches import known_size


def next_training_batch(dataset: Any) -> Any:
    """The tensors of the next batch, as each step gets them.

    The session initialises the iterator when it starts and after a recovery.
    """
    iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
    tf.compat.v1.add_to_collection(
        tf.compat.v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer
    )
    return iterator.get_next()


def as_pair(element: Any) -> tuple[Any, Any]:
    """An element of the input as `(features, labels)`."""
    if not isinstance(element, (tuple, list)) or len(element) != 2:
        raise errors.InvalidArgumentError(
            f"The input function gives elements of type `{type(element).__name__}`; "
            "expected `(features, labels)` pairs."
        )
    return element[0], element[1]


def num_batches(dataset: Any) -> int:
    """The cardinality of a dataset of the default graph."""
    (size,) = _run_apart([dataset.cardinality()])
    return int(size)


def check_first_batch(batch: Any, num_towers: int) -> None:
    """Raises if the first batch of an input does not divide among the towers.

    If the size is not static, as after `.batch(8)` without `drop_remainder`, one batch
    is read, in a session of its own. An error there is ignored: training meets it again
    and reports it. Inputs that need threads in their session (queue runners) are not
    read.
    """
    if num_towers == 1:
        return
    unknown = []
    for tensor in tf.nest.flatten(batch):
        if not isinstance(tensor, tf.Tensor) or tensor.shape.rank == 0:
            continue
        size = known_size(tensor)
        if size is None:
            unknown.append(tensor)
        else:
            check_divides(size, num_towers)
    keys = tf.compat.v1.GraphKeys
    if unknown and not tf.compat.v1.get_collection(keys.QUEUE_RUNNERS):
        first = tf.compat.v1.get_collection(keys.TABLE_INITIALIZERS)
        with contextlib.suppress(tf.errors.OpError):
            for size in _run_apart(unknown, first, lambda copy: tf.shape(copy)[0]):
                check_divides(int(size), num_towers)


def _run_apart(
    tensors: list[Any], first: Any = (), of: Callable[[Any], Any] = lambda copy: copy
) -> list[Any]:
    """The values of `of(tensor)`, after `first`, in a copy of the tensors' graph."""
    v1 = tf.compat.v1
    before = [getattr(each, "op", each).name for each in first]
    part = v1.graph_util.extract_sub_graph(
        tensors[0].graph.as_graph_def(), [*before, *(t.op.name for t in tensors)]
    )
    # The session below does not have the devices of a cluster.
    for node in part.node:
        node.device = ""
    with tf.Graph().as_default() as copy:
        copies = tf.graph_util.import_graph_def(
            part, name="", return_elements=[tensor.name for tensor in tensors]
        )
        config = v1.ConfigProto(device_count={"GPU": 0})
        with v1.Session(graph=copy, config=config) as session:
            session.run([copy.get_operation_by_name(name) for name in before])
            values: list[Any] = session.run([of(tensor) for tensor in copies])
            return values
