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


def sliding_window_batch(
    window_size: Any,
    stride: Any = None,
    window_shift: Any = None,
    window_stride: Any = 1,
) -> Callable[[Any], Any]:
    """`tf.contrib.data.sliding_window_batch`."""
    shift = stride if window_shift is None else window_shift

    def windows(dataset: Any) -> Any:
        found = dataset.window(window_size, shift or 1, window_stride, True)
        return found.flat_map(lambda *parts: _zipped(parts, window_size))

    return windows


def _zipped(parts: tuple[Any, ...], size: Any) -> Any:
    batches = tuple(part.batch(size) for part in parts)
    return batches[0] if len(batches) == 1 else tf.data.Dataset.zip(batches)


def read_batch_features(
    file_pattern: Any,
    batch_size: int,
    features: Any,
    reader: Any = None,
    reader_args: Any = None,
    randomize_input: bool = True,
    num_epochs: int | None = None,
    capacity: int = 10000,
) -> Any:
    """`tf.contrib.data.read_batch_features`: a batch of parsed examples."""
    dataset = tf.compat.v1.data.experimental.make_batched_features_dataset(
        file_pattern,
        batch_size,
        features,
        reader=reader or tf.compat.v1.data.TFRecordDataset,
        reader_args=reader_args,
        num_epochs=num_epochs,
        shuffle=randomize_input,
        shuffle_buffer_size=capacity,
    )
    return tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
