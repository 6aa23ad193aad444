"""Errors of a parameter-server cluster, kept from looking like a lost session."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge.adapters.fit_loop.monitored import Guest

_LOST = (tf.errors.AbortedError, tf.errors.UnavailableError)


class ClusterFailure(Exception):
    """Carries an error of the cluster past `MonitoredSession`'s recovery.

    A session that lost a server can be made anew; a strategy that lost one cannot.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


class ShieldedGuest(Guest):
    """A hook whose errors of the cluster do not look like a lost session.

    Args:
      hook: the user's hook.
      is_lost: whether an error is the cluster's; others are the hook's own.
    """

    def __init__(self, hook: Any, is_lost: Callable[[BaseException], bool]) -> None:
        for name in ("begin", "after_create_session", "before_run", "after_run"):
            setattr(self, name, _shielded(getattr(hook, name), is_lost))


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
