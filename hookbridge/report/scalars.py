"""The curves that a run wrote: scalars of event files, and columns of CSV logs."""

from __future__ import annotations

import csv
import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

# `[(x, value)]` in order of x; x is a step or an epoch, whatever the writer counted.
Points = list[tuple[float, float]]
# Length of a record and its checksum, then the record and its checksum.
_HEADER, _CHECKSUM = struct.Struct("<QI"), 4
_FIRST_COLUMNS = ("epoch", "step", "global_step")


class Curve(NamedTuple):
    """The key of a curve.

    Attributes:
      place: a CSV file, or the folder of event files, relative to the run's directory.
      name: the column, or the tag.
      axis: what x counts, "epoch" or "step".
    """

    place: str
    name: str
    axis: str


def read_curves(directory: str | Path) -> dict[Curve, Points]:
    """Every curve below the directory of a run, those of CSV files first.

    Numbers that are not finite are left out.
    """
    directory = Path(directory)
    found: dict[Curve, Points] = {}
    for file in sorted(directory.rglob("*.csv")):
        place = file.relative_to(directory).as_posix()
        found.update(_columns(file, place))
    for file in sorted(directory.rglob("*tfevents*")):
        place = file.parent.relative_to(directory).as_posix()
        for name, step, value in event_scalars(file):
            if math.isfinite(value):
                # Keras's `TensorBoard` callback counts epochs as the file's steps.
                axis = "epoch" if name.startswith("epoch_") else "step"
                found.setdefault(Curve(place, name, axis), []).append((step, value))
    return {key: sorted(points) for key, points in found.items() if points}


def event_scalars(file: str | Path) -> Iterator[tuple[str, int, float]]:
    """`(tag, step, value)` of each scalar in an event file, of TF1 or of TF2."""
    import tensorflow as tf

    for record in _records(Path(file)):
        event = tf.compat.v1.Event.FromString(record)
        for value in event.summary.value:
            number = _scalar(tf, value)
            if number is not None:
                yield value.tag, event.step, number


def _records(file: Path) -> Iterator[bytes]:
    """The records of a TFRecord file; an incomplete last one is left out.

    TensorFlow's readers need a graph or eager mode, and warn that they are deprecated.
    """
    with file.open("rb") as stream:
        while len(header := stream.read(_HEADER.size)) == _HEADER.size:
            length, _ = _HEADER.unpack(header)
            record = stream.read(length)
            if len(record) < length:
                return
            yield record
            stream.read(_CHECKSUM)


def _scalar(tf: Any, value: Any) -> float | None:
    kind = value.WhichOneof("value")
    if kind == "simple_value":
        return float(value.simple_value)
    if kind == "tensor" and value.metadata.plugin_data.plugin_name == "scalars":
        return float(tf.make_ndarray(value.tensor))
    return None


def _columns(file: Path, place: str) -> dict[Curve, Points]:
    """The number columns of a CSV file whose first column counts epochs or steps."""
    with file.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    if not rows or not rows[0] or rows[0][0] not in _FIRST_COLUMNS:
        return {}
    axis = "epoch" if rows[0][0] == "epoch" else "step"
    columns: dict[Curve, Points] = {}
    for row in rows[1:]:
        x = _number(row[0]) if row else None
        for name, cell in zip(rows[0][1:], row[1:], strict=False):
            value = _number(cell)
            if x is not None and value is not None:
                columns.setdefault(Curve(place, name, axis), []).append((x, value))
    return columns


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
