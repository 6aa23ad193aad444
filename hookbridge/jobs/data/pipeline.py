"""From rows to batches: shuffle, map, repeat, padded batch, prefetch."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from hookbridge import errors
from hookbridge.ground.arguments import (
    count,
    instance,
    optional_count,
    shown,
    with_arguments,
)
from hookbridge.jobs.data.bad_rows import BadRow, find_bad_rows, printed
from hookbridge.jobs.data.rows import Rows

BadRows = Literal["stop", "skip"]
_COLUMN_TYPES = (tf.string, tf.int32, tf.int64, tf.float32, tf.float64)


class Pipeline:
    """Batches of the examples that an extractor makes from rows.

    Rows go through a shuffle buffer, the extractor in parallel, `repeat`, a padded
    batch (unknown sizes become the longest of the batch) and a prefetch. Replicated
    towers take one batch each with `hb.replicate_model_fn(batches="fetch")`.

    Args:
      rows: the files.
      extractor: called with the columns of a line, or with the record of a TFRecord
        file, as tensors `[]`; returns `(features, label)` or features alone. It is
        traced once for each dataset, on the thread that calls `dataset`. The traced
        function runs once for each row, in the threads of `tf.data`.
      batch_size: examples in a batch.
      columns: a value for each column of a line, which sets its type: `""` for text,
        `0` for integers, `0.0` for floats. It is not a default: no column may be empty.
      locations: the columns that name files. Relative names are below the folder of
        the first file of `rows`.
      label: the column of an integer label, checked against `num_classes`.
      num_classes: how many labels there are; None checks nothing.
      shuffle_buffer: rows in the shuffle buffer of the training.
      seed: the seed of the shuffle.
      bad_rows: "stop" ends the run at a row that cannot be read (`first_bad_row` says
        which). "skip" first reads all rows once, reports those that cannot be read,
        and leaves them out.
      shard: `(number of workers that share the rows of the training, index of this
        one)`.

    Attributes:
      skipped: the rows that were left out.

    Raises:
      errors.InvalidArgumentError: an argument has a bad value.
    """

    def __init__(
        self,
        rows: Rows,
        extractor: Callable[..., Any],
        *,
        batch_size: int,
        columns: Sequence[Any] = ("", 0),
        locations: Sequence[int] = (),
        label: int = -1,
        num_classes: int | None = None,
        shuffle_buffer: int = 10_000,
        seed: int | None = None,
        bad_rows: BadRows = "stop",
        shard: tuple[int, int] = (1, 0),
    ) -> None:
        if not isinstance(rows, Rows) or not callable(extractor):
            raise errors.InvalidArgumentError(
                f"Received rows={shown(rows)} and extractor={shown(extractor)}; "
                "expected `hb.data.Rows(...)` and a function of the columns."
            )
        if bad_rows not in ("stop", "skip"):
            raise errors.InvalidArgumentError(
                f"Received bad_rows={shown(bad_rows)}; expected 'stop' or 'skip'."
            )
        optional_count("num_classes", num_classes)
        columns = list(instance("columns", columns, (list, tuple), "a list of values"))
        for column in (
            *instance("locations", locations, (list, tuple), "a list"),
            label,
        ):
            if not _is_column(column, len(columns)):
                raise errors.InvalidArgumentError(
                    f"Received the column {shown(column)} in `locations` or `label`; "
                    f"expected the index of one of the {len(columns)} `columns`, from "
                    f"{-len(columns)} to {len(columns) - 1}."
                )
        names = [f"column_{index}" for index in range(len(columns))]
        if rows.format == "tfrecord":
            names = ["record"]
        self._rows = rows
        self._extractor = with_arguments("extractor", extractor, *names)
        self._batch_size = count("batch_size", batch_size)
        for index, value in enumerate(columns):
            _check_column_value(index, value)
        self._columns = columns
        self._locations = {location % len(self._columns) for location in locations}
        self._label = label
        self._num_classes = num_classes
        self._shuffle_buffer = count("shuffle_buffer", shuffle_buffer)
        self._seed = _checked_seed(seed)
        self._shard = _checked_shard(shard)
        self.skipped: list[BadRow] = []
        if bad_rows == "skip":
            self.skipped = printed(find_bad_rows(rows, self.transform))

    def dataset(self, *, training: bool) -> Any:
        """Return a `tf.data.Dataset` of batches, tensors `[N, ...]`.

        Args:
          training: whether rows are sharded, shuffled and repeated without end, and a
            last, smaller batch is dropped.
        """
        without = [(row.file, row.number) for row in self.skipped]
        data = self._rows.dataset(without).map(lambda file, number, row: row)
        workers, index = self._shard
        if training:
            data = data.shard(workers, index) if workers > 1 else data
            data = data.shuffle(self._shuffle_buffer, seed=self._seed)
        examples = self.transform(data)
        if training:
            examples = examples.repeat()
        batches = batched(examples, self._batch_size, drop_remainder=training)
        return batches.prefetch(tf.data.AUTOTUNE)

    def transform(self, rows: Any) -> Any:
        """Turn a dataset of rows into a dataset of examples.

        Args:
          rows: a `tf.data.Dataset` of lines or records, as strings `[]`.
        """
        return rows.map(self._example, num_parallel_calls=tf.data.AUTOTUNE)

    def first_bad_row(self) -> BadRow | None:
        """Return the first row that cannot be read, or None."""
        bad = find_bad_rows(self._rows, self.transform, most=1)
        return bad[0] if bad else None

    def _example(self, row: object) -> Any:
        """Return what the extractor makes of a row, with checked labels and paths."""
        if self._rows.format == "tfrecord":
            return self._extractor(row)
        defaults = [
            tf.constant([], tf.constant(default).dtype) for default in self._columns
        ]
        columns = tf.io.decode_csv(row, defaults)
        folder = os.path.dirname(self._rows.files[0])
        for location in self._locations:
            columns[location] = _below(folder, columns[location])
        if self._num_classes is not None:
            label = columns[self._label]
            tf.debugging.Assert(
                (label >= 0) & (label < self._num_classes),
                [f"the label is out of range 0 to {self._num_classes - 1}:", label],
            )
        return self._extractor(*columns)


def _check_column_value(place: int, value: object) -> None:
    """Raise unless a value has a type that a column of a line can have."""
    dtype = None
    with contextlib.suppress(TypeError, ValueError):
        dtype = tf.constant(value).dtype
    if dtype not in _COLUMN_TYPES:
        raise errors.InvalidArgumentError(
            f"Received `columns[{place}]={shown(value)}`; expected a value of the "
            'type of the column: "" for text, 0 for integers or 0.0 for floats.'
        )


def _checked_seed(seed: Any) -> int | None:
    is_number = isinstance(seed, (int, np.integer)) and not isinstance(seed, bool)
    if seed is not None and not is_number:
        raise errors.InvalidArgumentError(
            f"Received `seed={shown(seed)}`; expected an integer, or None."
        )
    return None if seed is None else int(seed)


def _checked_shard(shard: Any) -> tuple[int, int]:
    """Return how many workers share the rows, and the index of this one."""
    is_pair = isinstance(shard, (tuple, list)) and len(shard) == 2
    whole = is_pair and all(type(number) is int for number in shard)
    if not whole or not 0 <= shard[1] < shard[0]:
        raise errors.InvalidArgumentError(
            f"Received `shard={shown(shard)}`; expected `(number of workers, index)` "
            "with an index from 0 to the number of workers minus 1."
        )
    return shard[0], shard[1]


def _is_column(place: Any, columns: int) -> bool:
    is_number = isinstance(place, int) and not isinstance(place, bool)
    return is_number and -columns <= place < columns


def batched(examples: Any, batch_size: Any, *, drop_remainder: bool) -> Any:
    """Return batches of examples; unknown sizes are padded to the longest.

    Args:
      examples: a `tf.data.Dataset` of single examples.
      batch_size: the number of examples in a batch, or a tensor with it.
      drop_remainder: whether a last batch of fewer examples is left out.
    """
    shapes = [spec.shape for spec in tf.nest.flatten(examples.element_spec)]
    if all(shape.is_fully_defined() for shape in shapes):
        return examples.batch(batch_size, drop_remainder=drop_remainder)
    return examples.padded_batch(batch_size, drop_remainder=drop_remainder)


def _below(folder: str, location: object) -> Any:
    """Return a location, in `folder` unless absolute or of another file system."""
    is_whole = tf.strings.regex_full_match(location, r"(/|[A-Za-z0-9]+://).*")
    return tf.where(is_whole, location, tf.strings.join([folder, location], "/"))
