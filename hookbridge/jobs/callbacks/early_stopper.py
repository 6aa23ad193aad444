"""Stops a training when a function says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hookbridge.ground.arguments import with_arguments
from hookbridge.jobs.callbacks.ready_made import ReadyMade, metrics_of


class EarlyStopper(ReadyMade):
    """Stops the training by the metrics of all evaluations so far.

    Its role is `"chief"`: the chief, or an evaluator, has the evaluation results.

    Args:
      stop_fn: called as `stop_fn(evaluations)` with a list of `{metric: value}`, the
        newest last; returns whether to stop. It is called once after each evaluation,
        on the thread of the loop.

    Attributes:
      evaluations: the list that `stop_fn` gets. It is saved with checkpoints and goes
        on after a restart.

    Raises:
      errors.InvalidArgumentError: `stop_fn` is not a function.
    """

    def __init__(self, stop_fn: Callable[[list[dict[str, Any]]], bool]) -> None:
        super().__init__("chief")
        self._stop_fn = with_arguments("stop_fn", stop_fn, "metrics")
        self.evaluations: list[dict[str, Any]] = []

    def on_test_end(self, logs: Mapping[str, Any] | None = None) -> None:
        metrics = metrics_of(logs)
        self.evaluations.append({name: float(value) for name, value in metrics.items()})
        if self._stop_fn(list(self.evaluations)):
            self.model.stop_training = True
