"""The notebooks of the examples run, and print what the repository shows."""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

EXPECTED = {
    "callbacks_in_a_session.ipynb": ["epoch 0: y = ", "learning rate 0.05", "on_epoch"],
    "hooks_in_fit.ipynb": ["of 32 units are dead", " epochs, loss from ", "for ever"],
}
_MOST_CHARACTERS = 6_000  # of everything that a notebook prints
# A path, a date, a time or a warning of the machine where it ran.
_OF_A_MACHINE = re.compile(r"(?<![\w`.])/\w+/|\d{4}-\d\d|\d\d:\d\d|[Ww]arning|WARN")


@pytest.fixture(scope="module")
def tools(repo_root: Path) -> dict[str, Any]:
    return runpy.run_path(str(repo_root / ".ci" / "notebooks.py"))


@pytest.mark.parametrize("name", EXPECTED)
def test_its_outputs_are_in_the_repository(name: str, tools: dict[str, Any]) -> None:
    """Those of a run from the first cell to the last, without a word of the machine."""
    folder: Path = tools["NOTEBOOKS"]
    assert {path.name for path in folder.glob("*.ipynb")} == set(EXPECTED)
    notebook = tools["read"](folder / name)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [out for cell in code for out in cell.outputs]
    assert all(out.get("name") == "stdout" for out in outputs)
    printed = "".join(out.text for out in outputs)
    assert all(text in printed for text in EXPECTED[name])
    assert not _OF_A_MACHINE.search(printed)
    assert len(printed) < _MOST_CHARACTERS


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", EXPECTED)
def test_it_prints_the_same_kinds_of_lines_again(
    name: str,
    tools: dict[str, Any],
    repo_root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = f"{repo_root}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    monkeypatch.setenv("PYTHONPATH", path)
    # Otherwise the kernel writes its history and connection into the user's home.
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tools["NOTEBOOKS"] / name
    lines = tools["kinds_of_lines"]
    assert lines(tools["executed"](file, tmp_path)) == lines(tools["read"](file))
