"""The UCI handwritten digits, split for training, validation and test."""

from __future__ import annotations

import csv
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from hookbridge import errors

IMAGES = 1797
TEST_IMAGES = 360
VALIDATION_IMAGES = 180
TRAINING_IMAGES = IMAGES - TEST_IMAGES - VALIDATION_IMAGES
PIXELS, CLASSES, MAX_PIXEL = 64, 10, 16


class Split(NamedTuple):
    """One part of the data.

    Attributes:
      images: float32 `[N, 64]`, from 0 to 1.
      labels: int64 `[N]`, from 0 to 9.
    """

    images: Any
    labels: Any


class Digits(NamedTuple):
    """The three parts."""

    train: Split
    validation: Split
    test: Split


def read_digits() -> Split:
    """Reads the file that comes with the package, in its order.

    Raises:
      errors.InvalidArgumentError: the file is damaged.
    """
    path = resources.files("hookbridge.demo") / "data" / "digits.csv"
    rows = list(csv.reader(path.read_text(encoding="ascii").splitlines()))[1:]
    table = np.array(rows, dtype=np.int64)
    if table.shape != (IMAGES, PIXELS + 1):
        raise errors.InvalidArgumentError(
            f"{path} holds a table {table.shape}; expected {(IMAGES, PIXELS + 1)}. "
            "Install the package again."
        )
    return Split((table[:, :-1] / MAX_PIXEL).astype(np.float32), table[:, -1])


def load_digits(seed: int) -> Digits:
    """The data, shuffled by `seed` and split."""
    images, labels = read_digits()
    order = np.random.default_rng(seed).permutation(IMAGES)
    ends = np.cumsum([TRAINING_IMAGES, VALIDATION_IMAGES])
    return Digits(
        *(Split(images[part], labels[part]) for part in np.split(order, ends))
    )


def training_dataset(part: Split, *, batch_size: int, seed: int) -> Any:
    """Endless batches in a new order each epoch; graph and eager mode get the same.

    Returns:
      A `tf.data.Dataset` of `([batch_size, 64], [batch_size])`; `N // batch_size`
      batches make an epoch.
    """
    import tensorflow as tf

    return (
        tf.data.Dataset.from_tensor_slices(tuple(part))
        .shuffle(len(part.labels), seed=seed, reshuffle_each_iteration=True)
        .batch(batch_size, drop_remainder=True)
        .repeat()
    )


def whole(part: Split) -> Any:
    """A part as one batch, so that every loop computes the same means."""
    import tensorflow as tf

    return tf.data.Dataset.from_tensors(tuple(part))
