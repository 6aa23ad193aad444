"""Finds the rows that a pipeline cannot read, and says where they are."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from hookbridge.ground import compat
from hookbridge.jobs.data.rows import Rows

# Turns a dataset of rows into a dataset of examples.
Transform = Callable[[Any], Any]


class BadRow(NamedTuple):
    """A row that cannot be read.

    Attributes:
      file: the file that it is in.
      number: the number of its line, or of the record, from 1.
      reason: what is wrong with it.
    """

    file: str
    number: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.number}: {self.reason}"


def find_bad_rows(
    rows: Rows, transform: Transform, most: int | None = None
) -> list[BadRow]:
    """Return the rows, at most `most`, from which `transform` cannot make an example.

    All rows are read once, in the threads of `tf.data`. Only the rows that gave no
    example are read again, one by one.
    """
    with compat.private("eager_mode")():  # an `input_fn` is called in a graph
        return _found(rows, transform, most)


def printed(rows: list[BadRow]) -> list[BadRow]:
    """Print on stderr which rows are left out; return them."""
    for row in rows:
        print(f"hookbridge: skipped {row}", file=sys.stderr)
    return rows


def _found(rows: Rows, transform: Transform, most: int | None) -> list[BadRow]:
    """Return the rows that `transform` fails on, from one parallel read of all."""

    def outcome(file: object, number: object, row: object) -> Any:
        examples = transform(tf.data.Dataset.from_tensors(row)).take(1)
        marks = examples.map(lambda *_: True).ignore_errors()
        nothing = tf.data.Dataset.from_tensors(False)
        good = marks.concatenate(nothing).take(1)
        return good.map(lambda is_good: (is_good, file, number, row))

    if rows.format == "tfrecord":
        rows.count()  # says which file is damaged
    bad = []
    checked = rows.dataset().interleave(
        outcome, cycle_length=8, num_parallel_calls=tf.data.AUTOTUNE
    )
    for is_good, file, number, row in checked:
        if is_good:
            continue
        reason = _reason(transform, row)
        # A row that `transform` leaves out on purpose raises nothing.
        if reason is not None:
            path = file.numpy().decode(errors="replace")
            bad.append(BadRow(path, int(number), reason))
            if len(bad) == most:
                break
    return bad


def _reason(transform: Transform, row: object) -> str | None:
    """Return what TensorFlow says about a row; None if it says nothing."""
    try:
        for _ in transform(tf.data.Dataset.from_tensors(row)):
            pass
    except tf.errors.OpError as e:
        return tidied(e.message)
    return None


def tidied(message: str) -> str:
    """Return an error of TensorFlow without the places of its ops."""
    text = " ".join(message.split())
    text = re.sub(r" Detected at node .* Node: '\S+'", "", text)
    text = re.sub(r"\s*\[\[\{\{node .*", "", text)
    text = re.sub(r"\s*\[Op:\w+\].*", "", text)
    text = re.sub(r"^\{\{function_node .*?\}\}\s*", "", text)
    # TensorFlow since 2.16 first names the part of the pipeline.
    text = re.sub(r"^Error in user-defined function .*? iterator: \S+: ", "", text)
    text = re.sub(r"^\{\{function_node .*?\}\}\s*", "", text)
    return text.rstrip(".") + "."
