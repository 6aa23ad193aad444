"""Bad input to files of rows and pipelines: the error and its words."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bad_calls import call

import hookbridge as hb


def damaged_records(folder: Path) -> str:
    path = folder / "broken.tfrecord"
    path.write_bytes(b"no records at all")
    return str(path)


def pipeline(*, batch_size: Any = 2, **options: Any) -> Any:
    rows = hb.data.Rows(__file__)
    return hb.data.Pipeline(rows, print, batch_size=batch_size, **options)


CALLS: dict[str, Callable[[Path], Any]] = {
    "format='csv'; expected 'text', 'tfrecord' or None": call(
        hb.data.Rows, __file__, format="csv"
    ),
    "the column 2 in `locations` or `label`; .*the 2 `columns`, from": lambda _: (
        hb.data.Pipeline(hb.data.Rows(__file__), print, batch_size=2, label=2)
    ),
    "broken.tfrecord is not a TFRecord file; expected whole records": lambda folder: (
        hb.data.Rows(damaged_records(folder)).count()
    ),
    **{
        rf"`{re.escape(f'{name}={value!r}')}`; expected": call(
            pipeline, **{name: value}
        )
        for name, value in (
            ("shard", (2, 2)),
            ("shard", (0, 0)),
            ("shard", 3),
            ("shard", (2.0, 1)),
            ("seed", "a"),
            ("seed", True),
        )
    },
    r"`columns\[1\]=<object .*>`; expected": call(pipeline, columns=("", object())),
    r"`columns\[0\]=True`; expected": call(pipeline, columns=(True, 0)),
    r"`extractor` is the function `<lambda>\(row\)`; .* `extractor\(column_0, ": (
        lambda _: hb.data.Pipeline(
            hb.data.Rows(__file__), lambda row: row, batch_size=2
        )
    ),
    "test_bad_data.py is not a TFRecord file; expected whole records": call(
        hb.data.Rows, __file__, format="tfrecord"
    ),
    "'none.csv', which does not exist": call(hb.data.Rows, "none.csv"),
    "expected at least one file": call(hb.data.Rows, []),
    "rows='x'": call(hb.data.Pipeline, "x", print, batch_size=1),
    "`files=None` of type `NoneType`; expected a path, or a list of paths": call(
        hb.data.Rows, None
    ),
    "files with '.*', a folder without files; expected files": lambda folder: (
        hb.data.Rows(str(folder))
    ),
}


@pytest.mark.parametrize("words", CALLS)
def test_a_call_is_refused(words: str, tmp_path: Path) -> None:
    with pytest.raises(hb.errors.InvalidArgumentError, match=words):
        CALLS[words](tmp_path)
