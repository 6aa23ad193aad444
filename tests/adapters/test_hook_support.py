"""The support table of hooks: every cell is a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hook_hosts as hosts
import hook_support as support
import pytest
import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.hook_to_callback import HookToCallback


def run(keras: Any, strategy: str, mode: str, hook: Any) -> None:
    scope = None
    if strategy == "MirroredStrategy":
        scope = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    model = hosts.keras_model(keras, scope)
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
