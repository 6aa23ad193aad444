"""Event files that TensorBoard reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorflow as tf


def events(folder: Path) -> dict[str, list[tuple[int, Any]]]:
    """`{tag: [(step, value)]}` of all event files under a folder."""
    found: dict[str, list[tuple[int, Any]]] = {}
    for file in sorted(folder.rglob("events.out.tfevents.*")):
        prefix = file.parent.relative_to(folder)
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            if event.HasField("graph_def"):
                found.setdefault(f"{prefix}:graph", []).append((0, None))
            for value in event.summary.value:
                number = None
                if value.HasField("tensor"):
                    array = tf.make_ndarray(value.tensor)
                    number = (
                        float(array)
                        if array.shape == () and (array.dtype.kind == "f")
                        else None
                    )
                key = f"{prefix}:{value.tag}"
                found.setdefault(key, []).append((event.step, number))
    return found
