"""Steps that no callback looks at take the fast path; the result is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from callback_loops import STEPS, session_loop

from hookbridge.adapters.session_loop.training import TrainRun


def outcome(keras: Any, max_steps: int) -> list[Any]:
    """Number of steps, a History's content and the weights after a run."""
    history = keras.callbacks.History()
    run = session_loop([history], epochs=3, max_steps=max_steps)
    return [run.steps, history.epoch, history.history, run.weights]


@pytest.mark.parametrize("max_steps", [3 * STEPS, 2 * STEPS - 1])
def test_fast_path_equals_the_long_one(
    keras: Any, monkeypatch: pytest.MonkeyPatch, max_steps: int
) -> None:
    taken: list[Any] = []
    finish = vars(TrainRun)["_finish_step"]

    def counted(self: TrainRun, run_context: Any) -> None:
        taken.append(self.step)
        finish(self, run_context)

    monkeypatch.setattr(TrainRun, "_finish_step", counted)
    fast = outcome(keras, max_steps)
    long_ways = len(taken)
    # `_plain` stays None, so that no step takes the fast path.
    off = property(lambda self: None, lambda self, value: None)
    monkeypatch.setattr(TrainRun, "_plain", off, raising=False)
    slow = outcome(keras, max_steps)
    assert len(taken) - long_ways == max_steps > long_ways > 0
    assert fast[:3] == slow[:3]
    for ours, theirs in zip(fast[3], slow[3], strict=True):
        np.testing.assert_array_equal(ours, theirs)
