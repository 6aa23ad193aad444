"""Splits batches of any size, for evaluation and prediction."""

from __future__ import annotations

from typing import Any

from hookbridge import errors
from hookbridge.loops.towers.batches import check_dense


def split_any_batch(batch: Any, num_towers: int) -> tuple[list[Any], list[Any]]:
    """Splits a batch along its first axis into shards as equal as possible.

    The last batch of a data set may have any size, and a tower may get nothing.

    Args:
      batch: a (nested) structure of dense tensors `[N, ...]`; None stays None.
      num_towers: number of shards.

    Returns:
      The shards and their sizes, int32 `[]`.

    Raises:
      errors.InvalidArgumentError: a tensor cannot be split.
    """
    import tensorflow as tf

    flat = [tensor for tensor in tf.nest.flatten(batch) if tensor is not None]
    for tensor in flat:
        check_dense(tensor)
        if tensor.shape.rank == 0:
            raise errors.InvalidArgumentError(
                f"Received the input {tensor}; expected tensors `[N, ...]`, which can "
                "be split among the towers. Batch the dataset, or use one tower."
            )
    total = tf.shape(flat[0])[0]
    sizes = [
        total // num_towers + tf.cast(index < total % num_towers, tf.int32)
        for index in range(num_towers)
    ]
    parts = {
        id(tensor): tf.split(tensor, tf.stack(sizes), num=num_towers) for tensor in flat
    }
    shards = [
        tf.nest.map_structure(
            lambda tensor, i=index: None if tensor is None else parts[id(tensor)][i],
            batch,
        )
        for index in range(num_towers)
    ]
    return shards, sizes
