"""A user's own SessionRunHook, written for TF1 and for nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf


class ActivityHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Watches the learning rate and the hidden layer at every step.

    Attributes:
      steps: steps seen in the last run.
      learning_rates: every learning rate seen, in order, without repetition.
      mean_activation: mean output of the hidden layer over all steps.
      silent_units: hidden units that were zero for every example of every step.
    """

    def __init__(self, layer: str = "hidden/Relu:0") -> None:
        """Initialises the hook.

        Args:
          layer: name of a tensor `[N, units]`.
        """
        self._layer = layer

    def begin(self) -> None:
        self.steps = 0
        self.learning_rates: list[float] = []
        self._sum = 0.0
        self._peak: Any = None

    def before_run(self, run_context: Any) -> Any:
        return tf.compat.v1.train.SessionRunArgs(
            {"learning_rate": "learning_rate:0", "hidden": self._layer}
        )

    def after_run(self, run_context: Any, run_values: Any) -> None:
        rate = float(run_values.results["learning_rate"])
        hidden = run_values.results["hidden"]
        if not self.learning_rates or self.learning_rates[-1] != rate:
            self.learning_rates.append(rate)
        self.steps += 1
        self._sum += float(hidden.mean())
        peak = hidden.max(axis=0)
        self._peak = peak if self._peak is None else np.maximum(self._peak, peak)

    def end(self, session: Any) -> None:
        self.mean_activation = self._sum / max(self.steps, 1)
        self.silent_units = int(np.sum(self._peak <= 0)) if self.steps else 0
