"""Canaries: the functions whose locals are read have these locals."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from private_attributes import KERAS_VERSION

from hookbridge.ground import compat
from hookbridge.ground.compat.frames import FRAMES, PrivateFrame, code_of

# Keras before 3.7 makes a `tf.function`, and needs no row.
HAS_FRAME = KERAS_VERSION > (3, 6)
IS_KERAS_2 = KERAS_VERSION < (3, 0)


def is_here(row: PrivateFrame) -> bool:
    """Whether the installed versions should have the module of a row."""
    package = row.module.split(".")[0]
    if package == "keras" and row.module != "keras.src.callbacks":
        is_of_keras3 = ".backend." in row.module or ".src.legacy." in row.module
        return HAS_FRAME if is_of_keras3 else IS_KERAS_2
    return importlib.util.find_spec(package) is not None


ROWS = [
    pytest.param(row, id=f"{key}-{row.module.split('.')[0]}")
    for key, rows in FRAMES.items()
    for row in rows
]


@pytest.mark.parametrize("row", ROWS)
def test_private_frame_is_where_the_table_says(row: PrivateFrame) -> None:
    import tensorflow as tf

    import hookbridge as hb

    tf.keras.Model, hb.estimator.Estimator  # noqa: B018 - makes packages importable
    if is_here(row):
        assert code_of(row).co_name == row.path.rpartition(".")[2].rpartition(":")[2]


def test_every_row_is_here_on_some_version(subtests: pytest.Subtests) -> None:
    for key, rows in FRAMES.items():
        with subtests.test(str(key)):
            assert any(map(is_here, rows)) or key.startswith("keras3_")
    assert all(len(row.why) > 10 for rows in FRAMES.values() for row in rows)


def test_no_row_is_unused(repo_root: Path) -> None:
    files = (repo_root / "adapters").rglob("*.py")
    text = "\n".join(file.read_text("utf-8") for file in files)
    assert [key for key in FRAMES if f'"{key}"' not in text] == []


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`outside(place, *locals)` reads them while a module of somebody else runs."""
    module: Any = types.ModuleType("outside_module")
    exec("def work(call):\n    held = 3\n    return call()\n", vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def read(place: str, *names: str) -> Any:
        row = PrivateFrame(f"outside_module:{place}", names, "show what a move does")
        monkeypatch.setitem(FRAMES, "test_only", (row,))
        return module.work(lambda: compat.running_locals("test_only"))

    return read


def test_locals_are_read_while_the_function_runs(outside: Any) -> None:
    assert outside("work", "held")["held"] == 3
    assert compat.running_locals("test_only") is None


def test_a_name_that_moved_is_an_error(outside: Any) -> None:
    moved = compat.PrivateNameMovedError
    with pytest.raises(moved, match=r"work` \(show .* has no `renamed` here"):
        outside("work", "held", "renamed")
    with pytest.raises(moved, match=r"`outside_module:moved` .* does not have there"):
        outside("moved", "held")
    with pytest.raises(moved):
        outside("make.work", "step")
    work = sys.modules["outside_module"].work  # type: ignore[attr-defined]
    with pytest.raises(moved, match="has no `step` here"):
        compat.closure_of("test_only", work)
    assert compat.closure_of("test_only", outside) is None
