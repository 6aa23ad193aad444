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

# (Keras, mode, company) -> {row's name: (its hook after the run, its folder)}.
Together = Callable[[Any, str, str], dict[str, tuple[Any, Path]]]


def run(keras: Any, strategy: str, mode: str, *hooks: Any) -> None:
    mirrored = hosts.mirrored() if strategy == "MirroredStrategy" else None
    model = hosts.keras_model(keras, mirrored)
    arguments: dict[str, Any] = {"batch_size": hosts.BATCH, "verbose": 0}
    arguments["callbacks"] = [HookToCallback(hook) for hook in hooks]
    data = (hosts.X,) if mode == "predict" else (hosts.X, hosts.Y)
    getattr(model, mode)(*data, **arguments)


def company(row: support.Row, mode: str) -> str | None:
    """The group of hooks that can share one loop with this one; None: it runs alone."""
    if support.cell(row, mode) != "carried" or row.name == "StopAtStepHook":
        return None
    if ".stop_if_" in row.name:
        return None if mode == "fit" else "stop at once"
    return "never stop"


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Together:
    """One run for all hooks of a company, since tracing two replicas takes long."""

    @functools.cache
    def run_all(keras: Any, mode: str, name: str) -> dict[str, tuple[Any, Path]]:
        made = {}
        for row in support.ROWS:
            if company(row, mode) == name:
                folder = tmp_path_factory.mktemp("hook")
                made[row.name] = row.make(folder, mode), folder
        run(keras, "MirroredStrategy", mode, *(hook for hook, _ in made.values()))
        return made

    return run_all


@pytest.mark.parametrize("mode", support.MODES)
@pytest.mark.parametrize("strategy", support.STRATEGIES)
@pytest.mark.parametrize("row", support.ROWS, ids=lambda row: row.name)
def test_cell(
    keras: Any,
    row: support.Row,
    strategy: str,
    mode: str,
    tmp_path: Path,
    together: Together,
) -> None:
    name = company(row, mode)
    if strategy == "MirroredStrategy" and name is not None:
        hook, folder = together(keras, mode, name)[row.name]
        assert row.check(hook, folder, mode)
        return
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
