"""`tensorflow.examples.tutorials.mnist.input_data`, from local files."""

from __future__ import annotations

import gzip
import os
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from hookbridge import errors

TRAIN_IMAGES = "train-images-idx3-ubyte"
TRAIN_LABELS = "train-labels-idx1-ubyte"
TEST_IMAGES = "t10k-images-idx3-ubyte"
TEST_LABELS = "t10k-labels-idx1-ubyte"


class Datasets(NamedTuple):
    """The three parts of MNIST."""

    train: DataSet
    validation: DataSet
    test: DataSet


class DataSet:
    """Images and labels that are handed out in batches, shuffled in each epoch.

    NumPy's global generator is seeded here, so the order is that of TensorFlow 1.
    """

    def __init__(
        self,
        images: Any,
        labels: Any,
        dtype: Any = "float32",
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        graph_seed, op_seed = tf.compat.v1.get_seed(seed)
        np.random.seed(graph_seed if seed is None else op_seed)
        if reshape:
            images = images.reshape(images.shape[0], -1)
        if tf.as_dtype(dtype) == tf.float32:
            images = np.multiply(images.astype(np.float32), 1.0 / 255.0)
        self.images: Any = images
        self.labels: Any = labels
        self.num_examples: int = len(images)
        self.epochs_completed: int = 0
        self._place = 0

    def next_batch(
        self, batch_size: int, fake_data: bool = False, shuffle: bool = True
    ) -> tuple[Any, Any]:
        """Return the next images and labels; a batch may reach into the next epoch."""
        start = self._place
        if self.epochs_completed == 0 and start == 0 and shuffle:
            self._shuffle()
        end = start + batch_size
        if end <= self.num_examples:
            self._place = end
            return self.images[start:end], self.labels[start:end]
        self.epochs_completed += 1
        images, labels = self.images[start:], self.labels[start:]
        if shuffle:
            self._shuffle()
        self._place = end - self.num_examples
        return (
            np.concatenate([images, self.images[: self._place]]),
            np.concatenate([labels, self.labels[: self._place]]),
        )

    def _shuffle(self) -> None:
        order = np.arange(self.num_examples)
        np.random.shuffle(order)
        self.images, self.labels = self.images[order], self.labels[order]


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: object = "float32",
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str | None = None,
) -> Datasets:
    """Read the four files of MNIST from a folder; nothing is downloaded."""
    images, labels = (_read(train_dir, name) for name in (TRAIN_IMAGES, TRAIN_LABELS))
    test_images, test_labels = (
        _read(train_dir, name) for name in (TEST_IMAGES, TEST_LABELS)
    )
    if one_hot:
        labels, test_labels = np.eye(10)[labels], np.eye(10)[test_labels]

    def part(of_images: object, of_labels: object) -> DataSet:
        return DataSet(of_images, of_labels, dtype=dtype, reshape=reshape, seed=seed)

    return Datasets(
        part(images[validation_size:], labels[validation_size:]),
        part(images[:validation_size], labels[:validation_size]),
        part(test_images, test_labels),
    )


def load_mnist(train_dir: str = "MNIST-data") -> Datasets:
    """`tf.contrib.learn.datasets.mnist.load_mnist`: the files of a folder."""
    return read_data_sets(train_dir)


def load_dataset(
    name: str, size: str = "small", test_with_fake_data: bool = False
) -> Datasets:
    """`tf.contrib.learn.datasets.load_dataset`, of which MNIST is left.

    The others were files of `tf.contrib`, or downloads.
    """
    if name in ("boston", "dbpedia", "iris"):
        raise errors.GoneNameError(
            f"tf.contrib.learn.datasets.load_dataset({name!r}): only 'mnist' is "
            "left. Instead: `sklearn.datasets`, or your own file."
        )
    if name != "mnist":
        raise ValueError(f"Name of dataset is not found: {name}")
    return load_mnist()


def _read(folder: str, name: str) -> Any:
    """Return the images, `[number, height, width, 1]`, or the labels of a file."""
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        path += ".gz"
    if not os.path.exists(path):
        raise errors.InvalidArgumentError(
            f"There is no {path}, and nothing is downloaded; expected {TRAIN_IMAGES}, "
            f"{TRAIN_LABELS}, {TEST_IMAGES} and {TEST_LABELS} in {folder}, as they are "
            "or with `.gz`."
        )
    print("Extracting", path)
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        content = file.read()
    rank = 3 if "idx3" in name else 1
    sizes = np.frombuffer(content, ">u4", 1 + rank)[1:]
    data = np.frombuffer(content, np.uint8, offset=4 * (1 + rank))
    return data.reshape([*sizes, 1]) if rank == 3 else data
