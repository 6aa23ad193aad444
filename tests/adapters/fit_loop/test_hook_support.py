"""The support table of hooks: every cell is a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hook_hosts as hosts
import hook_support as support
import pytest

from hookbridge import errors
from hookbridge.adapters.hook_to_callback import HookToCallback

pytestmark = pytest.mark.slow


def run(keras: Any, strategy: str, mode: str, hook: Any) -> None:
    mirrored = hosts.mirrored() if strategy == "MirroredStrategy" else None
    model = hosts.keras_model(keras, mirrored)
    arguments: dict[str, Any] = {"batch_size": hosts.BATCH, "verbose": 0}
    arguments["callbacks"] = [HookToCallback(hook)]
    data = (hosts.X,) if mode == "predict" else (hosts.X, hosts.Y)
    getattr(model, mode)(*data, **arguments)


@pytest.mark.parametrize("mode", support.MODES)
@pytest.mark.parametrize("strategy", support.STRATEGIES)
@pytest.mark.parametrize("row", support.ROWS, ids=lambda row: row.name)
def test_cell(
    keras: Any, row: support.Row, strategy: str, mode: str, tmp_path: Path
) -> None:
    hook = row.make(tmp_path, mode)
    if support.cell(row, mode) == "carried":
        run(keras, strategy, mode, hook)
        assert row.check(hook, tmp_path, mode)
    else:
        reason = row.refused or row.refused_in[mode]
        with pytest.raises(errors.RefusedError, match=reason):
            run(keras, strategy, mode, hook)


def test_the_documented_table_is_this_one(repo_root: Path) -> None:
    text = (repo_root / "docs" / "hook-support.md").read_text(encoding="utf-8")
    assert support.table() in text, "run tests/adapters/helpers/write_hook_support.py"
    assert support.reasons() in text
