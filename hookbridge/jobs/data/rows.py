"""The rows of files: lines of text, or records of TFRecord files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Literal

import tensorflow as tf

from hookbridge import errors
from hookbridge.ground import compat
from hookbridge.ground.arguments import count, instance, shown

Format = Literal["text", "tfrecord"]
_RECORDS = (".tfrecord", ".tfrecords", ".tfrec")


class Rows:
    """The rows of files, each with its file and its line number.

    Args:
      files: paths or patterns, or folders, of any file system that `tf.io.gfile`
        knows; one or a list.
      header_lines: lines at the top of each text file that are not data.
      format: `"text"` or `"tfrecord"`; None decides by the names of the files.
      name: the name of `files` in messages.

    Attributes:
      files: the files, in order.

    Raises:
      errors.InvalidArgumentError: no file was found, a file is empty, or the first
        file is to have records and has none.
    """

    def __init__(
        self,
        files: str | Sequence[str],
        *,
        header_lines: int = 0,
        format: Format | None = None,
        name: str = "files",
    ) -> None:
        count("header_lines", header_lines, least=0)
        if format not in (None, "text", "tfrecord"):
            raise errors.InvalidArgumentError(
                f"Received format={shown(format)}; expected 'text', 'tfrecord' or None."
            )
        if isinstance(files, (str, os.PathLike)):
            files = [os.fspath(files)]
        patterns = list(instance(name, files, Iterable, "a path, or a list of paths"))
        self.files: list[str] = [
            file for pattern in patterns for file in _matches(pattern, name)
        ]
        if not self.files:
            raise errors.InvalidArgumentError(
                f"Received {name}={shown(files)}; expected at least one file."
            )
        for path in self.files:
            if tf.io.gfile.stat(path).length == 0:
                raise errors.InvalidArgumentError(
                    f"Received {name} with {path!r}, which is empty; expected rows of "
                    "data. Leave the file out."
                )
        named = all(path.lower().endswith(_RECORDS) for path in self.files)
        self.format: Format = format or ("tfrecord" if named else "text")
        self.header_lines = header_lines
        if self.format == "tfrecord":
            self._check_first_record()

    def dataset(self, without: Collection[tuple[str, int]] = ()) -> Any:
        """Return a `tf.data.Dataset` of `(file, number, row)`.

        Lines are numbered as in an editor, with the header; records are numbered
        from 1. Empty lines are not rows.

        Args:
          without: `(file, number)` of rows that are left out.
        """
        parts = [
            self._part(path, [n for f, n in without if f == path])
            for path in self.files
        ]
        joined = parts[0]
        for part in parts[1:]:
            joined = joined.concatenate(part)
        return joined

    def _part(self, path: str, without: Sequence[int]) -> Any:
        """Return the rows of a file, with path and number, without some of them."""
        if self.format == "tfrecord":
            rows = tf.data.TFRecordDataset(path).enumerate(1)
        else:
            rows = tf.data.TextLineDataset(path).enumerate(1).skip(self.header_lines)
            rows = rows.filter(lambda number, row: tf.not_equal(row, ""))
        if without:
            rows = rows.filter(
                lambda number, row: tf.reduce_all(
                    tf.not_equal(number, tf.constant(without, tf.int64))
                )
            )
        return rows.map(lambda number, row: (path, number, row))

    def count(self) -> int:
        """Return how many rows there are; read the files.

        Raises:
          errors.InvalidArgumentError: there are no rows, or a file of records is
            damaged.
        """
        with compat.private("eager_mode")():
            total = sum(map(self._count, self.files))
        if total == 0:
            lines = self.header_lines
            after = f" after the header (header_lines={lines})" if lines else ""
            raise errors.InvalidArgumentError(
                f"{', '.join(self.files)}: no rows{after}; expected data."
            )
        return total

    def _check_first_record(self) -> None:
        """Raise if the first file has lines of text, or anything but records."""
        path = self.files[0]
        with compat.private("eager_mode")(), _damage_named(path):
            next(iter(tf.data.TFRecordDataset(path)), None)

    def _count(self, path: str) -> int:
        zero = tf.constant(0, tf.int64)
        with _damage_named(path):
            rows = self._part(path, ()).reduce(zero, lambda total, *_: total + 1)
        return int(rows)


@contextlib.contextmanager
def _damage_named(path: str) -> Iterator[None]:
    """Raise an error that names the file if TensorFlow finds it damaged inside."""
    try:
        yield
    except tf.errors.DataLossError as e:
        reason = "is not a TFRecord file" if "at 0" in e.message else "is damaged"
        raise errors.InvalidArgumentError(
            f"{path} {reason}; expected whole records. TensorFlow says: {e.message}"
        ) from e


def _matches(pattern: object, name: str) -> list[str]:
    """Return the files of one path, pattern or folder, sorted.

    Raises:
      errors.InvalidArgumentError: no file was found, or it cannot be read.
    """
    gfile = tf.io.gfile
    if not isinstance(pattern, str) or not pattern:
        raise errors.InvalidArgumentError(
            f"Received {name} with {shown(pattern)}; expected a path or a pattern."
        )
    reason = "which does not exist"
    try:
        if gfile.isdir(pattern):
            reason = "a folder without files"
            inside = sorted(gfile.listdir(pattern))
            paths = [gfile.join(pattern, entry) for entry in inside if entry[0] != "."]
            files = [path for path in paths if not gfile.isdir(path)]
        else:
            files = sorted(gfile.glob(pattern))
    except tf.errors.OpError as e:
        files, reason = [], f"which cannot be read: {e.message}"
    if not files:
        raise errors.InvalidArgumentError(
            f"Received {name} with {shown(pattern)}, {reason}; expected files that can "
            "be read."
        )
    return files
