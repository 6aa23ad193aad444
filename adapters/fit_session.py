"""What `MonitoredSession` is given to drive hooks under `fit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.live_session import LiveSession


class Guest(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """A hook without its `end`, which comes at the place of its callback."""

    def __init__(self, hook: Any) -> None:
        self.begin = hook.begin
        self.after_create_session = hook.after_create_session
        self.before_run = hook.before_run
        self.after_run = hook.after_run


class Creator(tf.compat.v1.train.SessionCreator):  # type: ignore[misc]
    """Gives `MonitoredSession` its sessions; called again in recovery."""

    def __init__(self, create: Callable[[], LiveSession], scaffold: Any) -> None:
        self._create = create
        self._scaffold = scaffold

    def create_session(self) -> LiveSession:
        self._scaffold.finalize()
        session = self._create()
        # Variables of the model keep their values; those that hooks made in
        # `begin` get their first one.
        session.run(self._scaffold.init_op)
        session.run(self._scaffold.local_init_op)
        return session


def not_the_end_of_data(error: BaseException) -> errors.LiveSessionError:
    """What escapes in place of an error that Keras would swallow."""
    result = errors.LiveSessionError(
        f"A hook raised {type(error).__name__}: {error}. In a MonitoredSession it "
        "escapes the loop, but Keras would take it for the end of the data, so it "
        "comes as this error, with the hook's own as `hook_error`. Raise another "
        "type, or ask for a clean stop with `run_context.request_stop()`."
    )
    result.hook_error = error
    return result
