"""Extra summaries after each evaluation."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.ground.arguments import path, shown, with_arguments
from hookbridge.ground.single_number import as_number
from hookbridge.jobs.callbacks.ready_made import ReadyMade, metrics_of


class SummaryWriter(ReadyMade):
    """Writes summaries for TensorBoard after each evaluation.

    Its role is `"chief"`: the chief, or an evaluator, has the evaluation results.

    Args:
      summaries_fn: called as `summaries_fn(metrics)` with the metrics of the
        evaluation; returns `{tag: number}`. It may also call functions such as
        `tf.summary.image`, which write to the same files, and return None. It is called
        once after each evaluation, on the thread of the loop.
      log_dir: where the files go; None takes the folder `evaluation` next to
        the checkpoints (`params["checkpoint_path"]`).

    Raises:
      errors.InvalidArgumentError: `summaries_fn` is not a function, or it returned
        something else after an evaluation, or there is no folder.
    """

    def __init__(
        self,
        summaries_fn: Callable[[dict[str, Any]], Mapping[str, Any] | None],
        log_dir: str | None = None,
    ) -> None:
        super().__init__("chief")
        self._summaries_fn = with_arguments("summaries_fn", summaries_fn, "metrics")
        self._log_dir = None if log_dir is None else path("log_dir", log_dir)
        self._writer: Any = None

    def written_folders(self) -> list[str]:
        return [] if self._log_dir is None else [self._log_dir]

    def on_test_end(self, logs: Mapping[str, Any] | None = None) -> None:
        if self._writer is None:
            folder = self._log_dir or os.path.join(
                self.path(None, "checkpoint_path", "log_dir"), "evaluation"
            )
            self._writer = tf.summary.create_file_writer(folder)
        step = self.global_step()
        with self._writer.as_default(step=step):
            for tag, value in _checked(self._summaries_fn(metrics_of(logs))).items():
                tf.summary.scalar(tag, value, step=step)
        self._writer.flush()


def _checked(summaries: object) -> Mapping[str, Any]:
    """Return what `summaries_fn` returned, if it is numbers by their tags."""
    if summaries is None:
        return {}
    if not isinstance(summaries, Mapping):
        raise errors.InvalidArgumentError(
            f"`summaries_fn` of `SummaryWriter` returned {shown(summaries)}; expected "
            "a dict `{tag: number}`, or None."
        )
    for tag, value in summaries.items():
        if not isinstance(tag, str) or as_number(value) is None:
            raise errors.InvalidArgumentError(
                f"`summaries_fn` of `SummaryWriter` returned {shown(value)} for "
                f"{shown(tag)}; expected a dict `{{tag: number}}`, or None."
            )
    return summaries
