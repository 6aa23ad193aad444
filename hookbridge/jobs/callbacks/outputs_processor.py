"""Gives the predictions of each batch to a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hookbridge.ground.arguments import with_arguments
from hookbridge.jobs.callbacks.ready_made import ReadyMade


class PredictionOutputsProcessor(ReadyMade):
    """Calls a function with the predictions of each batch.

    Its role is `"worker"`: each process gives its own predictions.

    Args:
      process_fn: called as `process_fn(predictions)` with arrays `[N, ...]`: what the
        model returned, or a dict of several outputs. It is called once after each
        batch of `predict`, on the thread of the loop.

    Raises:
      errors.InvalidArgumentError: `process_fn` is not a function.
    """

    def __init__(self, process_fn: Callable[[Any], Any]) -> None:
        super().__init__("worker")
        self._process_fn = with_arguments("process_fn", process_fn, "outputs")

    def on_predict_batch_end(
        self, batch: int, logs: Mapping[str, Any] | None = None
    ) -> None:
        logs = logs or {}
        outputs = logs.get("predictions", logs.get("outputs"))
        # An Estimator puts a single output into a dict.
        if isinstance(outputs, Mapping) and set(outputs) == {"predictions"}:
            outputs = outputs["predictions"]
        self._process_fn(outputs)
