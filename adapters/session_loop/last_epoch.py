"""Ends a training of hooks only after its epochs."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.session_graph.steps import steps_of
from hookbridge.ground import collected
from hookbridge.ground.protocols import Coordinator, RunContext, RunValues, Session

v1 = tf.compat.v1


class LastEpochHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Stops a training at a global step; idle in evaluations and predictions.

    A run that begins at this step or after it makes no step, like a `fit` that begins
    after its last epoch.
    """

    def __init__(self, last_step: int) -> None:
        self.last_step = last_step
        # The global step of each open session, or None: an evaluation may begin in
        # mid-training with the same hooks.
        self._steps: list[Any] = []

    def begin(self) -> None:
        graph = v1.get_default_graph()
        step = collected.global_step(graph)
        if collected.eval_step(graph) is not None or steps_of(graph) is None:
            step = None
        elif step is None:
            raise errors.EpochsUndefinedError(
                "`as_hooks(..., epochs=...)` was given only hooks, and the graph has "
                "no global step, which counts the epochs. Call "
                "`tf.compat.v1.train.get_or_create_global_step()` and give its result "
                "to `minimize(loss, global_step=...)`.",
                see="epochs in a session",
            )
        self._steps.append(step)

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        step = self._steps[-1]
        if step is not None and session.run(step) >= self.last_step:
            coord.request_stop()

    def before_run(self, run_context: RunContext) -> Any:
        step = self._steps[-1]
        return None if step is None else v1.train.SessionRunArgs(step)

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        step = self._steps[-1]
        # The run may have read it before the update that moved it.
        if step is None or run_values.results + 1 < self.last_step:
            return
        if run_context.session.run(step) >= self.last_step:
            run_context.request_stop()

    def end(self, session: Session) -> None:
        self._steps.pop()
