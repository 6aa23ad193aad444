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


def num_batches(input_fn: Callable[[], Any]) -> int:
    """The cardinality of the dataset."""
    with tf.Graph().as_default(), tf.compat.v1.Session(config=_no_gpu()) as session:
        return int(session.run(input_fn().cardinality()))


def check_first_batch(input_fn: Callable[[], Any], num_towers: int) -> None:
    """Raises if the first batch of an input does not divide among the towers.

    If the size is not static, as after `.batch(8)` without `drop_remainder`, one batch
    is read, in a session of its own. An error there is ignored: training meets it again
    and reports it.
    """
    if num_towers == 1:
        return
    with tf.Graph().as_default():
        unknown = []
        for tensor in tf.nest.flatten(next_training_batch(input_fn())):
            if not isinstance(tensor, tf.Tensor) or tensor.shape.rank == 0:
                continue
            size = known_size(tensor)
            if size is None:
                unknown.append(tf.shape(tensor)[0])
            else:
                check_divides(size, num_towers)
        if not unknown:
            return
        with (
            contextlib.suppress(tf.errors.OpError),
            tf.compat.v1.Session(config=_no_gpu()) as session,
        ):
            session.run(tf.compat.v1.tables_initializer())
            for each in session.run(unknown):
                check_divides(int(each), num_towers)


def _no_gpu() -> Any:
    return tf.compat.v1.ConfigProto(device_count={"GPU": 0})
