"""Ends a training of hooks only after its epochs."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.session_graph.steps import steps_of
from hookbridge.ground.protocols import Coordinator, RunContext, RunValues, Session

v1 = tf.compat.v1


class LastEpochHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Stops a training at a global step; idle in evaluations and predictions.

    A run that begins at this step or after it makes no step, like a `fit` that begins
    after its last epoch.
    """

    def __init__(self, last_step: int) -> None:
        self.last_step = last_step
        # The global step and the hook that stops, one entry for each open session: an
        # evaluation may begin in mid-training with the same hooks.
        self._runs: list[tuple[Any, Any]] = []

    def begin(self) -> None:
        graph = v1.get_default_graph()
        step, stop = v1.train.get_global_step(graph), v1.train.SessionRunHook()
        if graph.get_collection(v1.GraphKeys.EVAL_STEP) or steps_of(graph) is None:
            step = None
        elif step is None:
            raise errors.EpochsUndefinedError(
                "`as_hooks(..., epochs=...)` was given hooks only, and the graph has "
                "no global step; expected one: call "
                "`tf.compat.v1.train.get_or_create_global_step()` and give it to "
                "`minimize(loss, global_step=...)`.",
                see="epochs in a session",
            )
        else:
            stop = v1.train.StopAtStepHook(last_step=self.last_step)
            stop.begin()
        self._runs.append((step, stop))

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        step, _ = self._runs[-1]
        if step is not None and session.run(step) >= self.last_step:
            coord.request_stop()

    def before_run(self, run_context: RunContext) -> Any:
        return self._runs[-1][1].before_run(run_context)

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        self._runs[-1][1].after_run(run_context, run_values)

    def end(self, session: Session) -> None:
        self._runs.pop()
