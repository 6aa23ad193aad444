"""Keras's own session, as hooks get it, and what prepares it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.graph_fit.keras_graph import KerasGraphPart
from hookbridge.adapters.hooked_loop.hooked_run import HookedRun
from hookbridge.adapters.hooked_loop.host import SessionPart
from hookbridge.adapters.hooked_loop.monitored import scaffold_of
from hookbridge.ground.protocols import Session


class KerasSession(tf.compat.v1.Session):  # type: ignore[misc]
    """A second handle of Keras's session; closing the handle does nothing.

    Keras lets it make callables, so that each step goes to the run with hooks. A hook's
    `run` is an ordinary run of the session. Only the step is not: `MonitoredSession`
    asks for it by `StepCall.fetches`.
    """

    def __init__(self, session: Session, make_step: Callable[[Any], Any]) -> None:
        # Not `super().__init__`, which opens a session with variables of its own.
        self.__dict__.update(vars(session))
        self.native = session
        self.make_step = make_step  # makes the callable of Keras's function
        self.step_call: Any = None

    def _make_callable_from_options(self, callable_options: object) -> Any:
        return self.make_step(callable_options)

    def run(
        self,
        fetches: Any,
        feed_dict: Any = None,
        options: tf.compat.v1.RunOptions | None = None,
        run_metadata: tf.compat.v1.RunMetadata | None = None,
    ) -> Any:
        step = self.step_call
        if step is not None and type(fetches) is dict:
            caller = fetches.get("caller")
            if caller is not None and caller is step.fetches:
                return step.run(fetches, feed_dict, options, run_metadata)
        try:
            return self.native.run(fetches, feed_dict, options, run_metadata)
        except tf.errors.InvalidArgumentError as e:
            if step is None or "You must feed a value for placeholder" not in str(e):
                raise
            if any(f"'{name}'" in str(e) for name in step.from_dataset):
                raise errors.LiveSessionError(
                    f"`session.run` was asked for {fetches!r}, which the step computes "
                    "from a dataset. Return it from `before_run` as "
                    "`SessionRunArgs(fetches)`.",
                    see="v1 graph in fit",
                ) from e
        # A tensor of the step, fetched outside a step, is computed on the last batch.
        feeds = {**step.last_feeds, **(feed_dict or {})}
        return self.native.run(fetches, feeds, options, run_metadata)

    def close(self) -> None:
        """Do nothing: the model lives in the session."""

    def __eq__(self, other: object) -> bool:
        # Keras compares sessions: for an unequal one it would make a new callable.
        return other is self or other is self.native

    def __hash__(self) -> int:
        return hash(self.native)

    def __del__(self) -> None:
        """Leave the session to Keras."""


class KerasSessionPart(SessionPart):
    """Keras's session; a recovery goes on with it."""

    current: KerasSession  # from Keras's first call of its function on

    def __init__(self, run: HookedRun, graph: KerasGraphPart) -> None:
        self._run = run
        self._graph = graph
        self._native: Session | None = None
        self._is_prepared = False

    def handle_of(
        self, native: Session, make_step: Callable[[Any], Any]
    ) -> KerasSession:
        """Return the handle of Keras's session; a new session gets a new one."""
        if native is not self._native:
            self._native, self.current = native, KerasSession(native, make_step)
        self.current.make_step = make_step
        return self.current

    def create_session(self) -> KerasSession:
        session = self.current
        if not self._is_prepared:
            self._is_prepared = True
            self._graph.make_final(session)
            scaffold = scaffold_of(self._run.hooks)
            if scaffold is not None:
                _run_scaffold(session, scaffold)
            session.graph.finalize()
        return session


def _run_scaffold(session: Session, scaffold: tf.compat.v1.train.Scaffold) -> None:
    """Finalize the scaffold of hooks and run the user's own ops in it."""
    # The ops that `finalize` makes initialise everything: they would reset the model.
    user_ops = (scaffold.init_op, scaffold.local_init_op)
    scaffold.finalize()
    if user_ops[0] is not None:
        session.run(user_ops[0], scaffold.init_feed_dict)
    if scaffold.init_fn is not None:
        scaffold.init_fn(session)
    if user_ops[1] is not None:
        session.run(user_ops[1])
