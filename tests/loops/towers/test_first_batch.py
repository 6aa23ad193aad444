"""The first batch is read before training if the graph does not know its size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import hookbridge as hb
from hookbridge.loops.towers.inputs import check_first_batch

X = np.arange(8, dtype=np.float32)


def plain() -> Any:
    return tf.data.Dataset.from_tensor_slices((X, {"y": X})).batch(8)


def generated() -> Any:
    def examples() -> Iterator[Any]:
        yield from zip(X, X, strict=True)

    shapes = (tf.TensorShape([]), tf.TensorShape([]))
    return tf.data.Dataset.from_generator(
        examples, (tf.float32, tf.float32), shapes
    ).batch(8)


def looked_up() -> Any:
    """Data with a table, whose initializer has to run first."""
    keys = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2]))
    table = tf.lookup.StaticHashTable(keys, default_value=0)
    words = tf.data.Dataset.from_tensor_slices(["a", "b", "a", "b", "a"])
    return words.map(table.lookup).batch(5)


def of_any_rank() -> Any:
    def any_rank(x: Any) -> Any:
        return tf.numpy_function(lambda value: value, [x], tf.float32)

    return tf.data.Dataset.from_tensor_slices(X).batch(8).map(any_rank)


@pytest.mark.parametrize("data", [plain, generated, looked_up, of_any_rank])
def test_a_batch_that_does_not_divide(data: Callable[[], Any]) -> None:
    with pytest.raises(hb.errors.InvalidArgumentError, match="examples for 3 towers"):
        check_first_batch(data, 3)
    check_first_batch(data, 1)


def test_what_divides_and_what_is_not_known_pass() -> None:
    check_first_batch(plain, 4)
    check_first_batch(lambda: plain().take(0), 3)
    check_first_batch(lambda: tf.data.Dataset.from_tensors({"scalar": 1.0}), 3)
    check_first_batch(
        lambda: plain().map(lambda x, _: tf.debugging.check_numerics(x / 0.0, "no")), 3
    )


def test_a_known_size_is_not_read() -> None:
    read: list[int] = []

    def note(x: Any) -> Any:
        read.append(len(x))
        return x

    def data(drop_remainder: bool) -> Any:
        dataset = tf.data.Dataset.from_tensor_slices(X).batch(8, drop_remainder)
        noted = dataset.map(lambda x: (x, tf.numpy_function(note, [x], tf.float32)))
        return noted.map(lambda x, y: (x, tf.ensure_shape(y, x.shape)))

    check_first_batch(lambda: data(drop_remainder=True), 4)
    assert read == []
    check_first_batch(lambda: data(drop_remainder=False), 4)
    assert read == [8]
