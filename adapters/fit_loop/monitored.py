"""What `MonitoredSession` is given to drive hooks under `fit`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.fit_loop import refusals
from hookbridge.adapters.guests.in_begin import InBegin
from hookbridge.adapters.live_session.session import LiveSession


class HookWithoutEnd(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """A hook without its `end`, which its callback calls."""

    def __init__(self, hook: Any) -> None:
        self._hook = hook
        self.after_create_session = hook.after_create_session
        self.before_run = hook.before_run
        self.after_run = hook.after_run

    def begin(self) -> None:
        """Begins the hook and checks that its tensors are of the run's graph."""
        hook, graph = self._hook, tf.compat.v1.get_default_graph()
        if isinstance(hook, InBegin):
            refusals.check_hook(hook.make(), graph)
        try:
            hook.begin()
        except Exception:
            # TensorFlow's own message about another graph names no way out.
            refusals.check_graph(hook, graph)
            raise
        refusals.check_graph(hook, graph)


def scaffold_of(hooks: Sequence[Any]) -> Any:
    """The scaffold of the first hook that has one, or None."""
    given = (getattr(hook, "_scaffold", None) for hook in hooks)
    return next((s for s in given if isinstance(s, tf.compat.v1.train.Scaffold)), None)


class Creator(tf.compat.v1.train.SessionCreator):  # type: ignore[misc]
    """Gives `MonitoredSession` its sessions; called again in recovery.

    Args:
      create: makes a session.
      scaffold: prepares it, in the order of TensorFlow's `SessionManager`.
    """

    def __init__(self, create: Callable[[], LiveSession], scaffold: Any) -> None:
        self._create = create
        self._scaffold = scaffold
        self._given: tuple[Any, Any] | None = None

    def create_session(self) -> LiveSession:
        scaffold = self._scaffold
        is_first = self._given is None
        if self._given is None:
            # Only the user's own ops. The ops that `finalize` makes have nothing to
            # report, since Keras has initialised the model.
            self._given = (scaffold.ready_for_local_init_op, scaffold.ready_op)
        with tf.compat.v1.get_default_graph().finalizing(scaffold):
            scaffold.finalize()
        session = self._create()
        # Variables of the model keep their values; those that hooks made in `begin`
        # are initialised.
        session.run(scaffold.init_op, feed_dict=scaffold.init_feed_dict)
        if is_first and scaffold.init_fn is not None:
            # A recovered session goes on with the model as it is.
            scaffold.init_fn(session)
        ready_for_local, ready = self._given
        self._check(session, ready_for_local)
        session.run(
            scaffold.local_init_op,
            feed_dict=getattr(scaffold, "local_init_feed_dict", None),
        )
        self._check(session, ready)
        return session

    def _check(self, session: LiveSession, ready_op: Any) -> None:
        if ready_op is None:
            return
        value = session.run(ready_op)
        # As in `SessionManager`: no value (of an op), a number or no names mean ready.
        if value is None or value.dtype == np.int32 or not value.size:
            return
        names = ", ".join(tf.compat.as_text(name) for name in np.ravel(value))
        raise RuntimeError(
            f"Init operations did not make model ready. Variables not initialized: "
            f"{names}"
        )


def not_the_end_of_data(error: BaseException) -> errors.LiveSessionError:
    """The error to raise in place of a hook's error that Keras would swallow."""
    result = errors.LiveSessionError(
        f"A hook raised {type(error).__name__}: {error}. In a MonitoredSession it "
        "escapes the loop, but Keras would take it for the end of the data, so it "
        "comes as this error, with the hook's own as `hook_error`. Raise another "
        "type, or ask for a clean stop with `run_context.request_stop()`.",
        see="live session",
    )
    result.hook_error = error
    return result
