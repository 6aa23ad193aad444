"""Brings a `tf.data.Dataset` into a session loop's graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hookbridge import errors

# Called inside the loop's graph; gives a dataset of `(features, labels)` batches.
InputFn = Callable[[], Any]


def make_dataset(input_fn: InputFn, *, name: str) -> Any:
    """The dataset that `input_fn` makes in the default graph.

    Args:
      input_fn: called without arguments inside the default graph.
      name: what messages call it.

    Raises:
      errors.InvalidArgumentError: `input_fn` is not callable, or gives no dataset.
    """
    import tensorflow as tf

    if not callable(input_fn):
        raise errors.InvalidArgumentError(
            f"Received {name}={input_fn!r}; expected a function without arguments "
            "that returns a `tf.data.Dataset` of `(features, labels)` batches: the "
            "dataset has to be made inside the loop's graph."
        )
    dataset = input_fn()
    if not isinstance(dataset, tf.data.Dataset):
        raise errors.InvalidArgumentError(
            f"`{name}` returned {dataset!r}; expected a `tf.data.Dataset` of "
            "`(features, labels)` batches."
        )
    return dataset


def num_batches(dataset: Any) -> int:
    """How many elements a dataset of the default graph has.

    Args:
      dataset: made in the default graph.

    Returns:
      The number, or `tf.data.INFINITE_CARDINALITY` or `tf.data.UNKNOWN_CARDINALITY`.
    """
    import tensorflow as tf

    v1 = tf.compat.v1
    size = dataset.cardinality()
    # A copy without devices: those of a cluster are not in a session of our own.
    part = v1.graph_util.extract_sub_graph(size.graph.as_graph_def(), [size.op.name])
    for node in part.node:
        node.device = ""
    with tf.Graph().as_default() as graph:
        (size,) = tf.graph_util.import_graph_def(
            part, name="", return_elements=[size.name]
        )
        with v1.Session(graph=graph) as session:
            return int(session.run(size))


def next_training_batch(dataset: Any) -> Any:
    """The tensors of one batch after the other.

    The session initialises the iterator when it starts and after a recovery.
    """
    import tensorflow as tf

    iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
    tf.compat.v1.add_to_collection(
        tf.compat.v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer
    )
    return iterator.get_next()
