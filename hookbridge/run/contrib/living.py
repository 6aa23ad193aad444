"""Which names of `tf.contrib` have something behind them; TensorFlow is not imported.

`data/living.json` is written by tests/run/write_living_names.py from `table` and the
names that TensorFlow 1.15 had.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

from hookbridge.run.contrib import table

FILE = Path(__file__).with_name("data") / "living.json"


@functools.cache
def names() -> dict[str, list[str]]:
    """Area -> the names in it that live."""
    listed = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    return {area: text.split() for area, text in listed.items()}


def lives(name: str) -> bool:
    """Whether something stands behind a name such as `tf.contrib.slim.conv2d`."""
    path = name.removeprefix("tf.contrib").lstrip(".")
    if table.areas_above(path):
        return True
    area, has_files, files = path.partition(".python.")
    if has_files:
        last = files.rpartition(".")[2]
        above = [area, ".".join([area, *files.split(".")[-2:-1]])]
        if any(f"{a}.{last}" in table.NAMES for a in above):
            return True
        # A file of the area can be imported; its names are looked at where they are.
        return any(last in names().get(a, ()) for a in above) or (
            area in table.AREAS and last.islower()
        )
    if path in table.NAMES:
        return True
    parts = path.split(".")
    return any(
        parts[place] in names().get(".".join(parts[:place]), ())
        for place in range(1, len(parts))
    )
