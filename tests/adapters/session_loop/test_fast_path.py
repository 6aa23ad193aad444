"""Steps that no callback looks at take a shorter way with the same result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from callback_loops import STEPS, session_loop

from hookbridge.adapters.session_loop.training import TrainRun


def outcome(keras: Any, folder: Path, max_steps: int) -> list[Any]:
    """What callbacks and files say after a run."""
    history = keras.callbacks.History()
    run = session_loop(
        [history],
        epochs=3,
        max_steps=max_steps,
        session_options={"checkpoint_dir": str(folder), "save_checkpoint_steps": 3},
    )
    states = [json.loads(p.read_text()) for p in sorted(folder.glob("*bridge*.json"))]
    for state in states:
        state["callbacks"][0]["state"].pop("history", None)
    return [run.steps, history.epoch, history.history, states, run.weights]


@pytest.mark.parametrize("max_steps", [3 * STEPS, 2 * STEPS - 1])
def test_fast_path_equals_the_long_one(
    keras: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_steps: int
) -> None:
    taken: list[Any] = []
    add = vars(TrainRun)["_finish_step"]
    monkeypatch.setattr(
        TrainRun, "_finish_step", lambda self, c: (taken.append(1), add(self, c))[1]
    )
    fast = outcome(keras, tmp_path / "fast", max_steps)
    long_ways = len(taken)
    # No kind of step is known as one that is only counted.
    off = property(lambda self: None, lambda self, value: None)
    monkeypatch.setattr(TrainRun, "_plain", off, raising=False)
    slow = outcome(keras, tmp_path / "slow", max_steps)
    assert len(taken) - long_ways == max_steps > long_ways > 0
    assert fast[:2] == slow[:2]
    assert fast[2] == slow[2]
    assert fast[3] == slow[3]
    for ours, theirs in zip(fast[4], slow[4], strict=True):
        np.testing.assert_array_equal(ours, theirs)
