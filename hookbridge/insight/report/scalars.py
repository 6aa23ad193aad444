"""The curves that a run wrote: scalars of event files, and columns of CSV logs."""

from __future__ import annotations

import csv
import inspect
import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# `[(x, value)]` in order of x; x is a step or an epoch, whatever the writer counted.
Points = list[tuple[float, float]]
_FIRST_COLUMNS = ("epoch", "step", "global_step")


class Curve(NamedTuple):
    """The key of a curve: where it is below the run's directory, its name, its axis.

    The place is a CSV file or a folder of event files; the axis is "epoch" or "step".
    """

    place: str
    name: str
    axis: str


def read_curves(directory: str | Path) -> dict[Curve, Points]:
    """Return every curve below the directory of a run, those of CSV files first.

    Numbers that are not finite are left out.
    """
    directory = Path(directory)
    curves: dict[Curve, Points] = {}
    for file in sorted(directory.rglob("*.csv")):
        source = file.relative_to(directory).as_posix()
        for axis, name, x, value in _cells(file):
            if math.isfinite(x) and math.isfinite(value):
                curves.setdefault(Curve(source, name, axis), []).append((x, value))
    for file in sorted(directory.rglob("*tfevents*")):
        source = file.parent.relative_to(directory).as_posix()
        for name, step, value in event_scalars(file):
            if math.isfinite(value):
                # Keras's `TensorBoard` callback counts epochs as the file's steps.
                axis = "epoch" if name.startswith("epoch_") else "step"
                curves.setdefault(Curve(source, name, axis), []).append((step, value))
    return {key: sorted(points) for key, points in curves.items()}


def event_scalars(file: str | Path) -> Iterator[tuple[str, int, float]]:
    """Yield `(tag, step, value)` of each scalar in an event file, of TF1 or of TF2."""
    import tensorflow as tf

    # Without its wrapper, which logs that it is deprecated; its replacement needs eager
    # mode.
    records = inspect.unwrap(tf.compat.v1.io.tf_record_iterator)(str(file))
    try:
        for record in records:
            event = tf.compat.v1.Event.FromString(record)
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    yield value.tag, event.step, value.simple_value
                elif value.metadata.plugin_data.plugin_name == "scalars":
                    yield value.tag, event.step, float(tf.make_ndarray(value.tensor))
    except tf.errors.DataLossError:  # the last record is still being written
        return


def _cells(file: Path) -> Iterator[tuple[str, str, float, float]]:
    """Yield `(axis, column, x, number)` of a CSV file that counts epochs or steps."""
    with file.open(newline="", encoding="utf-8") as stream:
        header, *rows = [*csv.reader(stream)] or [[]]
    if header[:1] and header[0] in _FIRST_COLUMNS:
        axis = "epoch" if header[0] == "epoch" else "step"
        for row in filter(None, rows):
            for name, cell in zip(header[1:], row[1:], strict=False):
                yield axis, name, _number(row[0]), _number(cell)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
