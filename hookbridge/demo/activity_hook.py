"""A user's own SessionRunHook, written only for TF1."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf


class ActivityHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Watches the learning rate and the hidden layer at every step.

    Attributes:
      found: after a clean end: the `steps` seen in the last run; all
        `learning_rates`, in order, without repetition; `mean_activation`, the mean
        output of the hidden layer over all steps; `silent_units`, the hidden units
        that were zero for every example of every step.
    """

    def __init__(self, layer: str = "hidden/Relu:0") -> None:
        """Initialises the hook.

        Args:
          layer: name of a tensor `[N, units]`.
        """
        self._layer = layer
        self.found: dict[str, Any] = {}

    def begin(self) -> None:
        self.found = {}
        self._steps = 0
        self._rates: list[float] = []
        self._sum = 0.0
        self._peak: Any = None

    def before_run(self, run_context: Any) -> Any:
        return tf.compat.v1.train.SessionRunArgs(
            {"learning_rate": "learning_rate:0", "hidden": self._layer}
        )

    def after_run(self, run_context: Any, run_values: Any) -> None:
        rate = float(run_values.results["learning_rate"])
        hidden = run_values.results["hidden"]
        if self._rates[-1:] != [rate]:
            self._rates.append(rate)
        self._steps += 1
        self._sum += float(hidden.mean())
        peak = hidden.max(axis=0)
        self._peak = peak if self._peak is None else np.maximum(self._peak, peak)

    def end(self, session: Any) -> None:
        self.found = {
            "steps": self._steps,
            "learning_rates": self._rates,
            "mean_activation": self._sum / max(self._steps, 1),
            "silent_units": int(np.sum(self._peak <= 0)) if self._steps else 0,
        }
