"""Runs the notebooks of the examples and writes what they print into them.

    python .ci/notebooks.py

What a cell prints to standard error is left out: it is of the machine.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "examples" / "notebooks"
_NUMBER = re.compile(r"[-+]?\d[\d_]*(\.\d+)?(e[-+]?\d+)?")


def read(path: Path) -> Any:
    """A notebook, with the outputs that it has."""
    return nbformat.read(path, as_version=4)


def executed(path: Path, folder: Path) -> Any:
    """A notebook whose cells have run in a folder, with what they have printed."""
    notebook = read(path)
    metadata = dict(notebook.metadata)
    nbclient.NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    ).execute()
    notebook.metadata = metadata  # without the version of this Python
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = _one_stream(cell.outputs)
    return notebook


def _one_stream(outputs: list[Any]) -> list[Any]:
    """What was printed, as one output: it comes in parts of any length."""
    text = "".join(out.text for out in outputs if out.get("name") == "stdout")
    others = [out for out in outputs if out.output_type != "stream"]
    new: Any = nbformat.v4.new_output
    return [*([new("stream", name="stdout", text=text)] if text else []), *others]


def kinds_of_lines(notebook: Any) -> list[list[str]]:
    """What each cell prints: its different lines, with `#` for each number."""
    kinds: list[list[str]] = []
    for cell in notebook.cells:
        printed = "".join(out.get("text", "") for out in cell.get("outputs", ()))
        lines = (_NUMBER.sub("#", line) for line in printed.splitlines())
        kinds.append(list(dict.fromkeys(lines)))
    return kinds


def main() -> None:
    os.environ["PYTHONPATH"] = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as folder:
            notebook = executed(path, Path(folder))
        nbformat.write(notebook, path)
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
