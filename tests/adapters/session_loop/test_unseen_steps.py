"""Steps that no callback looks at, against the same steps with one that does."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from callback_loops import STEPS, session_loop
from state_runs import document

ONE_KERAS = True


@pytest.mark.parametrize("seed", range(2))
def test_steps_that_nobody_looks_at_count_alike(
    keras: Any, tmp_path: Path, seed: int
) -> None:
    """Random sequences of runs: restarts in mid-epoch, stops, all epochs done."""
    choice = random.Random(seed)
    runs: list[dict[str, Any]] = [
        {
            "max_steps": choice.randint(1, 2 * STEPS),
            "save_every": choice.randint(1, STEPS),
            "stops_at": choice.choice([None, None, 1, 3]),
        }
        for _ in range(choice.randint(2, 4))
    ]

    class Looks(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            pass

    class Epochs(keras.callbacks.Callback):  # type: ignore[misc, name-defined]
        def __init__(self, stops_at: int | None) -> None:
            super().__init__()
            self.stops_at = stops_at
            self.seen: list[Any] = []

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.seen.append(["begin", epoch])

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.seen.append(["end", epoch, sorted((logs or {}).items())])
            self.model.stop_training = epoch == self.stops_at

    def outcome(name: str, looks: list[Any]) -> list[Any]:
        found: list[Any] = []
        for run in runs:
            epochs, history = Epochs(run["stops_at"]), keras.callbacks.History()
            saves = {
                "checkpoint_dir": str(tmp_path / name),
                "save_checkpoint_steps": run["save_every"],
            }
            made = session_loop(
                [history, epochs, *looks],
                epochs=4,
                max_steps=run["max_steps"],
                validate=False,
                session_options=saves,
            )
            states = {
                path.name: document(path)["loops"]
                for path in (tmp_path / name).glob("*.json")
            }
            found.append(
                [made.steps, epochs.seen, history.history, states, made.weights]
            )
        return found

    plain, long = outcome("plain", []), outcome("long", [Looks()])
    for ours, theirs in zip(plain, long, strict=True):
        assert ours[:4] == theirs[:4]
        for mine, others in zip(ours[4], theirs[4], strict=True):
            np.testing.assert_array_equal(mine, others)
