"""The support table of hooks: every cell is what happens in a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hook_loops
import hook_support as support
import pytest

from hookbridge import errors
from hookbridge.adapters.hook_to_callback import HookToCallback

ONE_KERAS = True

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("strategy", "mode"),
    [
        # Each loop once, and the strategy in the one that trains.
        pytest.param(strategy, mode, marks=pytest.mark.exhaustive)
        if strategy != "default" and mode != "fit"
        else (strategy, mode)
        for strategy in support.STRATEGIES
        for mode in support.MODES
    ],
)
def test_carried(
    keras: Any, strategy: str, mode: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    mirrored = hook_loops.mirrored() if strategy == "MirroredStrategy" else None
    found = support.run_all(
        lambda: hook_loops.keras_model(keras, mirrored), mode, tmp_path_factory.mktemp
    )
    for row in support.CARRIED:
        assert row.check(*found[row.name], mode), row.name


def test_refused(tmp_path: Path) -> None:
    for row in support.ROWS:
        hook = row.make(tmp_path, "fit")
        if row.refused is None:
            assert HookToCallback(hook).hook is hook
        else:
            with pytest.raises(errors.RefusedError, match=row.refused):
                HookToCallback(hook)


def test_the_documented_table_is_this_one(
    subtests: pytest.Subtests, repo_root: Path
) -> None:
    text = (repo_root / "docs" / "hook-support.md").read_text(encoding="utf-8")
    for part in (support.carried(), support.reasons()):
        with subtests.test(str(part)):
            assert part in text, f"docs/hook-support.md needs this:\n{part}"
