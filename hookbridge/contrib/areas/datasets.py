"""`tf.contrib.data`: what `tf.data` has under another name or with other arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def batch_and_drop_remainder(batch_size: object) -> Callable[[Any], Any]:
    """`tf.contrib.data.batch_and_drop_remainder`."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(
    batch_size: object, padded_shapes: object, padding_values: object = None
) -> Callable[[Any], Any]:
    """`tf.contrib.data.padded_batch_and_drop_remainder`."""
    return lambda dataset: dataset.padded_batch(
        batch_size, padded_shapes, padding_values, drop_remainder=True
    )
