"""The support table of hooks holds for v1 graphs too: every cell is a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hook_hosts as hosts
import hook_support as support
import pytest

from hookbridge.adapters.hook_to_callback import HookToCallback

CARRIED = [row for row in support.ROWS if row.refused is None]


@pytest.mark.v1_mode("disable_v2_behavior")
@pytest.mark.parametrize("mode", support.MODES)
@pytest.mark.parametrize("row", CARRIED, ids=lambda row: row.name)
def test_cell(keras2: Any, row: support.Row, mode: str, tmp_path: Path) -> None:
    hook = row.make(tmp_path, mode)
    model = hosts.keras_model(keras2, optimizer=keras2.optimizers.legacy.SGD)
    data = (hosts.X,) if mode == "predict" else (hosts.X, hosts.Y)
    arguments = {"batch_size": hosts.BATCH, "verbose": 0}
    getattr(model, mode)(*data, **arguments, callbacks=[HookToCallback(hook)])
    if row.name == "StepCounterHook" and mode == "fit":
        tags = {tag for _, tag, _ in hosts.read_scalars(tmp_path)}
        assert tags == {"training/SGD/iter/sec"}
    else:
        assert row.check(hook, tmp_path, mode)
