"""When a fit under `ParameterServerStrategy` waits for the steps in flight."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from hookbridge import compat

if TYPE_CHECKING:
    from hookbridge.adapters.parameter_server.run import ParameterServerRun

v1 = tf.compat.v1

# Set by the preemption signal: the running fit stops after the present step.
PREEMPTED = threading.Event()


class LateStop(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """The last hook: a stop waits until steps in flight have been delivered too."""

    def __init__(self, run: ParameterServerRun) -> None:
        self._run = run

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if run_context.stop_requested and self._run.ahead:
            self._run.stop_asked = True
            compat.withdraw_stop(run_context)


def saves_after(hook: Any, global_step: int) -> bool:
    """Whether a hook will save after the step that makes the global step this.

    Then nothing else may be in flight, so that the checkpoint is of its step.
    """
    timer = getattr(hook, "_timer", None)
    return (
        isinstance(hook, v1.train.CheckpointSaverHook)
        and timer is not None
        and bool(timer.should_trigger_for_step(global_step))
    )
