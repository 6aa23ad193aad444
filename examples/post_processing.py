"""Fetch a dict once, process it after the run.

    python examples/post_processing.py

Whatever a training wants to look at is fetched with the step, in one `run`. Functions
that know nothing of sessions process it afterwards. A hook does the fetching, so the
same lines run in a session and in `fit`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import hookbridge as hb

v1 = tf.compat.v1
DATA = Path(__file__).parent / "data" / "digits.csv"


class PostProcessing(v1.train.SessionRunHook):  # type: ignore[misc]
    """Fetches a dict with each step and gives it to functions.

    Args:
      fetches: `{name: tensor name}`.
      functions: each called with `{name: value}`.
    """

    def __init__(
        self,
        fetches: Mapping[str, str],
        functions: list[Callable[[Mapping[str, Any]], None]],
    ) -> None:
        self._fetches = dict(fetches)
        self._functions = functions

    def before_run(self, run_context: Any) -> Any:
        return v1.train.SessionRunArgs(self._fetches)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        for function in self._functions:
            function(run_values.results)


def main() -> None:
    """Trains in `fit`; collects losses and the share of zeros in the hidden layer."""
    losses: list[float] = []
    at_rest: list[float] = []
    hook = PostProcessing(
        {"loss": "loss:0", "hidden": "hidden/Relu:0"},
        [
            lambda found: losses.append(float(found["loss"])),
            lambda found: at_rest.append(float(np.mean(found["hidden"] == 0))),
        ],
    )
    rows = np.loadtxt(DATA, delimiter=",", skiprows=1, dtype=np.float32)
    model = tf.keras.Sequential(
        [
            tf.keras.Input([64]),
            tf.keras.layers.Dense(32, activation="relu", name="hidden"),
            tf.keras.layers.Dense(10),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    model.fit(
        *(rows[:, :-1] / 16, rows[:, -1]),
        epochs=2,
        verbose=0,
        callbacks=hb.as_callbacks(hook),
    )
    print(f"{len(losses)} steps; loss {losses[0]:.2f} to {losses[-1]:.2f}")
    print(f"of the hidden layer {np.mean(at_rest):.0%} is at rest")


if __name__ == "__main__":
    main()
