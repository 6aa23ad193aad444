"""Ends a run at a step, before its first step if it was reached already."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


class LastStepHook(tf.compat.v1.train.StopAtStepHook):  # type: ignore[misc]
    """`StopAtStepHook(last_step=...)` that adds no step to a finished run.

    TF's own always runs one step, so a restarted job would train one step more at
    each restart.
    """

    def __init__(self, last_step: int) -> None:
        """Initialises the hook.

        Args:
          last_step: global step after which the run ends.
        """
        super().__init__(last_step=last_step)
        self._target = last_step

    def begin(self) -> None:
        super().begin()
        self._step = tf.compat.v1.train.get_global_step()

    def after_create_session(self, session: Any, coord: Any) -> None:
        super().after_create_session(session, coord)
        if session.run(self._step) >= self._target:
            coord.request_stop()
