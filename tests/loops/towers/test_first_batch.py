"""The first batch is read before training if the graph does not know its size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb
from hookbridge.loops.towers.inputs import check_first_batch

X = np.arange(8, dtype=np.float32)


def of_any_rank() -> Any:
    def any_rank(x: Any) -> Any:
        return tf.numpy_function(lambda value: value, [x], tf.float32)

    return tf.data.Dataset.from_tensor_slices(X).batch(8).map(any_rank)


def looked_up() -> Any:
    """Data with a table, whose initializer has to run first."""
    keys = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2]))
    table = tf.lookup.StaticHashTable(keys, default_value=0)
    words = tf.data.Dataset.from_tensor_slices(["a", "b", "a", "b", "a"])
    return words.map(table.lookup).batch(5)


def test_a_batch_that_does_not_divide() -> None:
    read: list[int] = []

    def note(x: Any) -> Any:
        read.append(len(x))
        return x

    def noted(drop_remainder: bool) -> Any:
        dataset = tf.data.Dataset.from_tensor_slices(X).batch(8, drop_remainder)
        noted = dataset.map(lambda x: (x, tf.numpy_function(note, [x], tf.float32)))
        return noted.map(lambda x, y: (x, {"y": tf.ensure_shape(y, x.shape)}))

    for data in (looked_up, of_any_rank, lambda: noted(False), lambda: noted(True)):
        read.clear()
        with pytest.raises(hb.errors.InvalidArgumentError, match="for 3 towers"):
            check_first_batch(data, 3)
    assert read == []  # the size was known
    check_first_batch(lambda: noted(False), 4)
    assert read == [8]
    check_first_batch(looked_up, 1)
    # What is not known passes; training meets an error in the data again.
    check_first_batch(lambda: noted(False).take(0), 3)
    check_first_batch(lambda: tf.data.Dataset.from_tensors({"scalar": 1.0}), 3)
    check_first_batch(
        lambda: of_any_rank().map(lambda x: tf.debugging.check_numerics(x / 0.0, "")), 3
    )
