"""How a fit under `ParameterServerStrategy` stops: by a hook or a lost server."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge.adapters.hooked_loop.monitored import ClusterFailure, HookWithoutEnd

_LOST = (tf.errors.AbortedError, tf.errors.UnavailableError)


def saves_after(hook: Any, global_step: int) -> bool:
    """Whether a hook will save after the step that ends with this global step."""
    # Then no other step may be in flight, or the checkpoint would contain a later step.
    timer = getattr(hook, "_timer", None)
    return (
        isinstance(hook, tf.compat.v1.train.CheckpointSaverHook)
        and timer is not None
        and bool(timer.should_trigger_for_step(global_step))
    )


class ShieldedHook(HookWithoutEnd):
    """A hook whose methods raise errors of the cluster as `ClusterFailure`."""

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
