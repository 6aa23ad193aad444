"""Inputs of the samples in "Five kinds of programs": houses, and pictures of digits."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np


def houses(out: Path) -> None:
    """160 houses with 13 facts each: 128 are trained with, which is one batch."""
    facts = np.random.RandomState(0).normal(size=(160, 13))
    np.savez(out / "houses.npz", x=facts, y=facts.sum(1) + 20)


def pictures(out: Path) -> None:
    """256 pictures of digits in MNIST's files, for training and for evaluation."""
    noise = np.random.RandomState(1)
    for name in ("train", "t10k"):
        labels, images = _digits(noise, 256)
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            head = b"".join(
                n.to_bytes(4, "big") for n in (0x800 + array.ndim, *array.shape)
            )
            with gzip.open(out / f"{name}-{kind}-ubyte.gz", "wb") as file:
                file.write(head + array.tobytes())


def records(out: Path) -> None:
    """The same as records: 512 for training, 128 for evaluation and prediction each."""
    import tensorflow as tf

    noise = np.random.RandomState(2)
    for name, count in (("train", 512), ("validation", 128), ("test", 128)):
        with tf.io.TFRecordWriter(str(out / f"{name}.tfrecords")) as writer:
            for label, image in zip(*_digits(noise, count), strict=True):
                example = tf.train.Example()
                features = example.features.feature
                features["image_raw"].bytes_list.value.append(image.tobytes())
                features["label"].int64_list.value.append(int(label))
                writer.write(example.SerializeToString())


def _digits(noise: np.random.RandomState, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels `[N]`, and pictures `[N, 28, 28]` that are the brighter the higher."""
    labels = noise.randint(0, 10, count).astype(np.uint8)
    images = noise.rand(count, 28, 28) * 60 + labels[:, None, None] * 15.0
    return labels, images.astype(np.uint8)
