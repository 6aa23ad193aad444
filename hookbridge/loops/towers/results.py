"""The result of a training run, read after every guest's last event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training run.

    Attributes:
      global_step: the global step at the end.
      variables: `{variable name: array}` at the end, after every guest's last event.
        Empty in a cluster if the job was over before this task had a session, or if
        a stop ended this task in the middle of a step.
    """

    global_step: int
    variables: Mapping[str, Any]


class FinalValuesHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Keeps the variables and the global step at a clean end of the session.

    Put it last: a callback may restore the best weights at its end.
    """

    steps = 0

    def __init__(self) -> None:
        self.variables: dict[str, Any] = {}
        self.global_step: int | None = None

    def begin(self) -> None:
        self._tensors = {v.op.name: v for v in tf.compat.v1.global_variables()}
        self._step = tf.compat.v1.train.get_global_step()

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.steps += 1

    def end(self, session: Any) -> None:
        self.variables, step = session.run((self._tensors, self._step))
        self.global_step = int(step)
