"""The notebooks of the examples run, and keep no outputs in the repository."""

from __future__ import annotations

import os
from pathlib import Path

import nbclient
import nbformat
import pytest

pytestmark = pytest.mark.slow
NOTEBOOKS = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
# Text that a notebook prints if its guests have done their work.
EXPECTED = {
    "callbacks_in_a_session.ipynb": ["epoch 0: y = ", "learning rate 0.05", "on_epoch"],
    "hooks_in_fit.ipynb": ["of 32 units are dead", " epochs, loss from ", "for ever"],
}
_MOST_CHARACTERS = 6_000  # of everything that a notebook prints


@pytest.mark.parametrize(
    "name",
    [
        "callbacks_in_a_session.ipynb",
        pytest.param("hooks_in_fit.ipynb", marks=pytest.mark.one_tensorflow),
    ],
)
def test_the_notebook_runs(
    name: str, repo_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {path.name for path in NOTEBOOKS.glob("*.ipynb")} == set(EXPECTED)
    notebook = nbformat.read(  # type: ignore[no-untyped-call]
        NOTEBOOKS / name, as_version=4
    )
    kept = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(kept), "clear the outputs before you commit it"
    path = f"{repo_root}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    monkeypatch.setenv("PYTHONPATH", path)
    # Otherwise the kernel writes its history and connection into the user's home.
    monkeypatch.setenv("HOME", str(tmp_path))
    client = nbclient.NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    )
    client.execute()
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    printed = "".join(out.get("text", "") for out in outputs)
    for text in EXPECTED[name]:
        assert text in printed, printed
    assert len(printed) < _MOST_CHARACTERS
