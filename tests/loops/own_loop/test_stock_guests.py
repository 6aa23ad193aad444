"""Every stock hook and callback has the same effect in a loop of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import callback_support as callbacks
import hook_loops
import hook_support as hooks
import pytest
from observed import differences
from own_training import in_fit, in_own_loop

from hookbridge import errors

ONE_KERAS = True

pytestmark = pytest.mark.slow


def ends_the_loop(row: hooks.Row) -> bool:
    return row.name == "StopAtStepHook" or ".stop_if_" in row.name


def test_hooks(keras: Any, keras2: Any, tmp_path: Path) -> None:
    """All of them together, and each alone that ends the loop or is refused."""
    together = []
    for row in hooks.ROWS:
        if row.refused is None and not ends_the_loop(row):
            together.append(row)
            continue
        folder = tmp_path / row.name
        folder.mkdir(parents=True)
        hook = row.make(folder, "fit")
        if row.refused is None:
            in_own_loop(keras, hook)
            assert row.check(hook, folder, "fit"), row.name
        else:
            with pytest.raises(errors.RefusedError, match=row.refused):
                in_own_loop(keras, hook)
    made = []
    for row in together:
        own = tmp_path / row.name
        own.mkdir(parents=True)
        made.append((row, row.make(own, "fit"), own))
    strategy = hook_loops.mirrored() if keras is keras2 else None
    in_own_loop(keras, [hook for _, hook, _ in made], strategy=strategy)
    for row, hook, own in made:
        assert row.check(hook, own, "fit"), row.name


def files(folder: Path) -> set[str]:
    """The files of a folder, without what differs from process to process."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {
        "events" if "tfevents" in path.name else str(path.relative_to(folder))
        for path in found
    }


def facts(callback: Any) -> dict[str, float]:
    """The numbers that a callback keeps, besides times."""
    return {
        name: value
        for name, value in sorted(vars(callback).items())
        if isinstance(value, (int, float))
        if "time" not in name and "start" not in name
    }


def is_alone(name: str) -> bool:
    """Whether a callback fails, or is another one once more."""
    return name == "BaseLogger" or "experimental" in name


@pytest.mark.filterwarnings("ignore:Could not reach RemoteMonitor")
def test_callbacks(keras: Any, tmp_path: Path) -> None:
    """All of them together, and alone those that need it."""
    names = [n for n in callbacks.stock_of(keras) if n not in callbacks.REFUSED]
    together = [name for name in names if not is_alone(name)]
    assert len(together) >= 9
    for group in (together, *([name] for name in names if is_alone(name))):
        seen = []
        for run in (in_fit, in_own_loop):
            made = {}
            for name in group:
                folder = tmp_path / run.__name__ / name
                folder.mkdir(parents=True)
                made[name] = callbacks.STOCK[name](keras.callbacks, folder), folder
            try:
                model, history = run(keras, [c for c, _ in made.values()], epochs=3)
            except KeyError as e:  # `BaseLogger` reads what Keras no longer gives
                seen.append(e.args)
                continue
            left = {
                name: (facts(c), files(folder)) for name, (c, folder) in made.items()
            }
            seen.append((model.get_weights(), history, left))
        if seen[0] == ("metrics",):
            assert group == ["BaseLogger"] and seen[1] == seen[0]
            continue
        assert differences(seen[1], seen[0]) == [], group
