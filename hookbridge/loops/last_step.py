"""Ends a run at a step, before its first step if it was reached already."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.arguments import positive


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


def resolve_last_step(
    steps_per_epoch: int | None, epochs: int | None, max_steps: int | None
) -> int | None:
    """The global step that ends a run; None leaves the end to data and guests.

    Raises:
      errors.InvalidArgumentError: a count is none, or epochs have no length.
    """
    positive("steps_per_epoch", steps_per_epoch)
    positive("epochs", epochs)
    positive("max_steps", max_steps)
    if epochs is None:
        return max_steps
    if steps_per_epoch is None:
        raise errors.InvalidArgumentError(
            f"Received epochs={epochs} without steps_per_epoch; expected both, since "
            "a session counts steps. Give steps_per_epoch, or max_steps instead."
        )
    by_epochs = steps_per_epoch * epochs
    return by_epochs if max_steps is None else min(by_epochs, max_steps)
