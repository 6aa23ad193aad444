"""`tf.contrib.data`: what `tf.data` has under another name or with other arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def batch_and_drop_remainder(batch_size: Any) -> Callable[[Any], Any]:
    """`tf.contrib.data.batch_and_drop_remainder`."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(
    batch_size: Any, padded_shapes: Any, padding_values: Any = None
) -> Callable[[Any], Any]:
    """`tf.contrib.data.padded_batch_and_drop_remainder`."""
    return lambda dataset: dataset.padded_batch(
        batch_size, padded_shapes, padding_values, drop_remainder=True
    )


def sloppy_interleave(
    map_func: Any, cycle_length: Any, block_length: Any = 1
) -> Callable[[Any], Any]:
    """`tf.contrib.data.sloppy_interleave`."""
    return tf.data.experimental.parallel_interleave(  # type: ignore[no-any-return]
        map_func, cycle_length, block_length, sloppy=True
    )
