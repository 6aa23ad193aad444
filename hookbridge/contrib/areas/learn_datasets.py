"""`tf.contrib.learn.datasets.base`: tables in CSV files, and downloads."""

from __future__ import annotations

import csv
import os
import urllib.request
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from hookbridge.contrib.areas.mnist import Datasets

__all__ = [
    "Dataset",
    "Datasets",
    "load_csv_with_header",
    "load_csv_without_header",
    "maybe_download",
    "shrink_csv",
]


class Dataset(NamedTuple):
    """The rows of a table, and what is to be predicted for each."""

    data: Any
    target: Any


def load_csv_with_header(
    filename: str, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """Read a table whose first row has the numbers of its rows and of its features."""
    with tf.io.gfile.GFile(filename) as file:
        rows = csv.reader(file)
        header = next(rows)
        data = np.zeros((int(header[0]), int(header[1])), dtype=features_dtype)
        target = np.zeros((int(header[0]),), dtype=target_dtype)
        for number, row in enumerate(rows):
            target[number] = np.asarray(row.pop(target_column), dtype=target_dtype)
            data[number] = np.asarray(row, dtype=features_dtype)
    return Dataset(data, target)


def load_csv_without_header(
    filename: str, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """Read a table of rows alone."""
    data, target = [], []
    with tf.io.gfile.GFile(filename) as file:
        for row in csv.reader(file):
            target.append(row.pop(target_column))
            data.append(np.asarray(row, dtype=features_dtype))
    return Dataset(np.array(data), np.array(target, dtype=target_dtype))


def shrink_csv(filename: str, ratio: int) -> None:
    """Write each `ratio`th row of a table into a file whose name has `_small`."""
    small = filename.replace(".", "_small.")
    with tf.io.gfile.GFile(small, "w") as file, tf.io.gfile.GFile(filename) as whole:
        writer = csv.writer(file)
        writer.writerows(
            row for number, row in enumerate(csv.reader(whole)) if number % ratio == 0
        )


def maybe_download(filename: str, work_directory: str, source_url: str) -> str:
    """Download a file into a folder, unless it is there; return its path."""
    tf.io.gfile.makedirs(work_directory)
    path = os.path.join(work_directory, filename)
    if not tf.io.gfile.exists(path):
        downloaded, _ = urllib.request.urlretrieve(source_url)
        tf.io.gfile.copy(downloaded, path)
        size = tf.io.gfile.stat(path).length
        print("Successfully downloaded", filename, size, "bytes.")
    return path
