"""What the other files of this room do with tensors."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge.ground.protocols import Tensor


def dimensions(tensor: Tensor) -> list[Any]:
    """Return the dimensions of a tensor: numbers if known, otherwise tensors."""
    dynamic = tf.shape(tensor)
    sizes = enumerate(tensor.shape.as_list())
    return [dynamic[axis] if size is None else size for axis, size in sizes]


def map_batched(function: Any, state: object, *others: Any) -> Any:
    """Map the parts of a state that have a batch; scalars and arrays stay."""

    def one(value: Any, *rest: Any) -> Any:
        if isinstance(value, tf.TensorArray) or value.shape.rank == 0:
            return value
        return function(value, *rest)

    return tf.nest.map_structure(one, state, *others)


def hardmax(logits: Any, name: str | None = None) -> Tensor:
    """`tf.contrib.seq2seq.hardmax`: 1 at the largest value of each row."""
    with tf.compat.v1.name_scope(name, "Hardmax", [logits]):
        logits = tf.convert_to_tensor(logits)
        depth = dimensions(logits)[-1]
        hottest: Tensor = tf.one_hot(tf.argmax(logits, -1), depth, dtype=logits.dtype)
        return hottest
