"""The live sessions of one run, prepared as TensorFlow's `SessionManager` does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from hookbridge.adapters.fit_loop.fit_graph import FitGraphPart
from hookbridge.adapters.guests.kinds import name_of
from hookbridge.adapters.hooked_loop.hooked_run import HookedRun
from hookbridge.adapters.hooked_loop.host import SessionPart
from hookbridge.adapters.hooked_loop.monitored import scaffold_of
from hookbridge.adapters.live_session.session import LiveSession
from hookbridge.ground.protocols import Hook

_IN_END = (
    "hookbridge: `end` of %s fetched %s and got the values of the last step. A "
    "session would compute them on one more batch, but this loop has no batch left."
)


class FitSessionPart(SessionPart):
    """Makes live sessions by `make`, and runs what the scaffold of hooks asks for.

    Variables of the model keep their values; those that hooks made in `begin` are
    initialised.
    """

    current: LiveSession  # from `create_session` on

    def __init__(
        self, run: HookedRun, graph: FitGraphPart, make: Callable[[], LiveSession]
    ) -> None:
        self._run = run
        self._graph = graph
        self._make = make
        self._scaffold: Any = None  # from the first session on

    def create_session(self) -> LiveSession:
        """Make a session and run the scaffold of hooks, in TensorFlow's order."""
        is_first = self._scaffold is None
        if is_first:
            scaffold = scaffold_of(self._run.hooks)
            self._scaffold = scaffold or tf.compat.v1.train.Scaffold()
            # Only the user's own ops. The ops that `finalize` makes have nothing to
            # report, since Keras has initialised the model.
            self._ready_for_local = self._scaffold.ready_for_local_init_op
            self._ready = self._scaffold.ready_op
        scaffold = self._scaffold
        with self._graph.live.finalizing(scaffold):
            scaffold.finalize()
        session = self.current = self._make()
        session.run(scaffold.init_op, feed_dict=scaffold.init_feed_dict)
        if is_first and scaffold.init_fn is not None:
            # A recovered session goes on with the model as it is.
            scaffold.init_fn(session)
        _check_ready(session, self._ready_for_local)
        session.run(
            scaffold.local_init_op,
            feed_dict=getattr(scaffold, "local_init_feed_dict", None),
        )
        _check_ready(session, self._ready)
        return session

    def end(self, hook: Hook) -> None:
        """Call a hook's `end`; warn of values that a session would compute then."""
        taken_from_last_step = self.current.taken_from_last_step
        taken_from_last_step.clear()
        super().end(hook)
        if taken_from_last_step:
            logging.warning(_IN_END, name_of(hook), sorted(taken_from_last_step))


def _check_ready(session: LiveSession, ready_op: tf.Tensor | None) -> None:
    """Raise as `SessionManager` does if a ready op names what has no value."""
    if ready_op is None:
        return
    value = session.run(ready_op)
    # As in `SessionManager`: no value (of an op), a number or no names mean ready.
    if value is None or value.dtype == np.int32 or not value.size:
        return
    names = ", ".join(tf.compat.as_text(name) for name in np.ravel(value))
    raise RuntimeError(
        f"Init operations did not make model ready. Variables not initialized: {names}"
    )
