"""The support table of hooks: every cell is what happens in a run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hook_hosts as hosts
import hook_support as support
import pytest

from hookbridge import errors
from hookbridge.adapters.hook_to_callback import HookToCallback

pytestmark = pytest.mark.slow

# (Keras, strategy, mode, company) -> {row's name: (its hook after the run, folder)}.
Together = Callable[[Any, str, str, str], dict[str, tuple[Any, Path]]]
CARRIED = [row for row in support.ROWS if row.refused is None]


def run(keras: Any, strategy: str, mode: str, *hooks: Any) -> None:
    mirrored = hosts.mirrored() if strategy == "MirroredStrategy" else None
    model = hosts.keras_model(keras, mirrored)
    arguments: dict[str, Any] = {"batch_size": hosts.BATCH, "verbose": 0}
    arguments["callbacks"] = [HookToCallback(hook) for hook in hooks]
    data = (hosts.X,) if mode == "predict" else (hosts.X, hosts.Y)
    getattr(model, mode)(*data, **arguments)


def company(row: support.Row, mode: str) -> str:
    """The group of hooks that can share one loop with this one."""
    if row.name == "StopAtStepHook":
        return row.name
    if ".stop_if_" in row.name:
        return row.name if mode == "fit" else "stop at once"
    return "never stop"


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Together:
    """One run for all hooks of a company, since tracing takes long."""

    @functools.cache
    def run_all(
        keras: Any, strategy: str, mode: str, name: str
    ) -> dict[str, tuple[Any, Path]]:
        made = {}
        for row in CARRIED:
            if company(row, mode) == name:
                folder = tmp_path_factory.mktemp("hook")
                made[row.name] = row.make(folder, mode), folder
        run(keras, strategy, mode, *(hook for hook, _ in made.values()))
        return made

    return run_all


@pytest.mark.parametrize("mode", support.MODES)
@pytest.mark.parametrize("strategy", support.STRATEGIES)
def test_carried(keras: Any, strategy: str, mode: str, together: Together) -> None:
    for row in CARRIED:
        hook, folder = together(keras, strategy, mode, company(row, mode))[row.name]
        assert row.check(hook, folder, mode), row.name


@pytest.mark.parametrize("row", support.ROWS, ids=lambda row: row.name)
def test_refused(row: support.Row, tmp_path: Path) -> None:
    hook = row.make(tmp_path, "fit")
    if row.refused is None:
        assert HookToCallback(hook).hook is hook
    else:
        with pytest.raises(errors.RefusedError, match=row.refused):
            HookToCallback(hook)


def test_the_documented_table_is_this_one(repo_root: Path) -> None:
    text = (repo_root / "docs" / "hook-support.md").read_text(encoding="utf-8")
    assert support.carried() in text, "run tests/adapters/helpers/write_hook_support.py"
    assert support.reasons() in text
