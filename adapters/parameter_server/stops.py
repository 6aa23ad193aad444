"""How a fit under `ParameterServerStrategy` stops: asked to, preempted, or failed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge import compat
from hookbridge.adapters.fit_loop.monitored import HookWithoutEnd

v1 = tf.compat.v1

_LOST = (tf.errors.AbortedError, tf.errors.UnavailableError)


class LateStop(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """The last hook: a stop waits until steps in flight have been delivered too.

    Args:
      ahead: how many steps hooks have not been told of yet.
      ask: asks for the stop, once they have been.
    """

    def __init__(self, ahead: Callable[[], int], ask: Callable[[], None]) -> None:
        self._ahead = ahead
        self._ask = ask

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if run_context.stop_requested and self._ahead():
            self._ask()
            compat.withdraw_stop(run_context)


def saves_after(hook: Any, global_step: int) -> bool:
    """Whether a hook will save after the step that makes the global step this.

    Then no other step may be in flight, so that the checkpoint is of its step.
    """
    timer = getattr(hook, "_timer", None)
    return (
        isinstance(hook, v1.train.CheckpointSaverHook)
        and timer is not None
        and bool(timer.should_trigger_for_step(global_step))
    )


class ClusterFailure(Exception):
    """Carries an error of the cluster past `MonitoredSession`'s recovery.

    A session that lost a server can be made anew. A strategy that lost one cannot.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


class ShieldedHook(HookWithoutEnd):
    """A hook whose errors of the cluster do not look like a lost session.

    Args:
      hook: the user's hook.
      is_lost: whether an error is the cluster's; others are the hook's own.
    """

    def __init__(self, hook: Any, is_lost: Callable[[BaseException], bool]) -> None:
        super().__init__(hook)
        for name in ("begin", "after_create_session", "before_run", "after_run"):
            setattr(self, name, _shielded(getattr(self, name), is_lost))


def _shielded(
    method: Callable[..., Any], is_lost: Callable[[BaseException], bool]
) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any) -> Any:
        try:
            return method(*args)
        except _LOST as e:
            if is_lost(e):
                raise ClusterFailure(e) from e
            raise

    return call
