"""The support table of hooks holds for v1 graphs too: every cell is a run."""

from __future__ import annotations

from typing import Any

import hook_loops
import hook_support as support
import pytest


@pytest.mark.v1_mode("disable_v2_behavior")
@pytest.mark.parametrize("mode", support.MODES)
def test_carried(
    keras2: Any, mode: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def model() -> Any:
        keras2.backend.clear_session()  # each model has a graph of its own
        return hook_loops.keras_model(keras2, optimizer=keras2.optimizers.legacy.SGD)

    found = support.run_all(model, mode, tmp_path_factory.mktemp)
    for row in support.CARRIED:
        hook, folder = found[row.name]
        if row.name == "StepCounterHook" and mode == "fit":
            tags = {tag for _, tag, _ in hook_loops.read_scalars(folder)}
            assert tags == {"training/SGD/iter/sec"}
        else:
            assert row.check(hook, folder, mode), row.name
