"""A scan as SARIF: where an editor and a code host look for a finding."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from migrate_command import Output, command

from hookbridge import old_programs

ONE_TENSORFLOW = True
PROGRAM = "import tensorflow as tf\n\nword = 'größe 数 😀'; x = tf.placeholder('f')\n"


def results(capsys: Output, *paths: str | os.PathLike[str]) -> list[Any]:
    """The results of a scan as SARIF."""
    (run,) = json.loads(command(capsys, "scan", "--format=sarif", *paths).out)["runs"]
    assert run["columnKind"] == "unicodeCodePoints"
    found: list[Any] = run["results"]
    return found


def place(result: Any) -> tuple[str, Any]:
    """The address and the region of a result."""
    (location,) = result["locations"]
    physical = location["physicalLocation"]
    return physical["artifactLocation"]["uri"], physical["region"]


def test_a_column_counts_characters(tmp_path: Path, capsys: Output) -> None:
    """Python counts bytes."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM, "utf-8")
    column = PROGRAM.splitlines()[2].index("tf.") + 1
    (found,) = (f for f in old_programs.scan([file]).findings if f.code == "V1_NAME")
    assert (found.line, found.column) == (3, column)
    (result,) = (r for r in results(capsys, file) if r["ruleId"] == "V1_NAME")
    assert place(result)[1] == {"startLine": 3, "startColumn": column}


@pytest.mark.parametrize("name", ["a dir/größe.py", "part#1 50%25.py", "a:b.py"])
def test_an_address_is_one_whatever_the_name(
    name: str, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(PROGRAM, "utf-8")
    monkeypatch.chdir(tmp_path)
    for given, scheme, path in ((".", "", name), (tmp_path, "file", str(file))):
        for result in results(capsys, given):
            uri = place(result)[0]
            assert uri.isascii() and " " not in uri
            parts = urlsplit(uri)
            assert (parts.scheme, parts.netloc, parts.fragment) == (scheme, "", "")
            assert unquote(parts.path) == path


def test_a_cell_has_lines_of_its_own(tmp_path: Path, capsys: Output) -> None:
    cells = [
        {"cell_type": "markdown", "source": "text"},
        {"cell_type": "code", "source": PROGRAM},
    ]
    file = tmp_path / "book.ipynb"
    file.write_text(json.dumps({"cells": cells, "nbformat": 4}))
    for result in results(capsys, file):
        assert place(result)[1] == {"startLine": 1}
        assert result["message"]["text"].startswith("cell 2, line 3: tf.placeholder")
