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


def num_batches(dataset: Any, *, session_config: Any = None) -> int:
    """How many elements a dataset of the default graph has.

    Args:
      dataset: made in the default graph.
      session_config: has the devices that the ops already in the graph ask for.

    Returns:
      The number, or `tf.data.INFINITE_CARDINALITY` or `tf.data.UNKNOWN_CARDINALITY`.
    """
    import tensorflow as tf

    size = dataset.cardinality()
    with tf.compat.v1.Session(graph=size.graph, config=session_config) as session:
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
