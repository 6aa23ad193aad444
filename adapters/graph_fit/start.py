"""What is made ready before the first step with hooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

v1 = tf.compat.v1


class Creator(tf.compat.v1.train.SessionCreator):  # type: ignore[misc]
    """Gives `MonitoredSession` Keras's session; called again in recovery.

    Variables of the model keep their values; those that hooks made in `begin` get
    their initial values.

    Args:
      session: the session.
      scaffold: the scaffold of a hook, or None.
      again: variables to initialise again.
      add_saver: adds the saver to its collection of the graph.
    """

    def __init__(
        self,
        session: Any,
        scaffold: Any,
        again: Sequence[Any],
        add_saver: Callable[[], None],
    ) -> None:
        self._session = session
        self._scaffold = scaffold
        self._again = again
        self._add_saver = add_saver
        self._is_first = True

    def create_session(self) -> Any:
        """The session, with everything initialised."""
        if self._is_first:
            self._is_first = False
            initialise(self._session, self._again)
            self._add_saver()
            if self._scaffold is not None:
                self._run_scaffold(self._scaffold)
            v1.get_default_graph().finalize()
        return self._session

    def _run_scaffold(self, scaffold: Any) -> None:
        # Only the user's own ops run: those that `finalize` makes initialise
        # everything, so they would reset the model.
        given = (scaffold.init_op, scaffold.local_init_op)
        scaffold.finalize()
        if given[0] is not None:
            self._session.run(given[0], scaffold.init_feed_dict)
        if scaffold.init_fn is not None:
            scaffold.init_fn(self._session)
        if given[1] is not None:
            self._session.run(given[1])


def initialise(session: Any, again: Sequence[Any]) -> None:
    """Initialises what has no value, and `again`; leaves Keras's variables to Keras."""
    graph = session.graph
    variables = [
        v
        for v in dict.fromkeys([*v1.global_variables(), *v1.local_variables()])
        if not getattr(v, "_keras_initialized", False)
    ]
    if variables:
        known = session.run([v1.is_variable_initialized(v) for v in variables])
        new = [v for v, is_known in zip(variables, known, strict=True) if not is_known]
        session.run([v.initializer for v in (*new, *again)])
    for key in (v1.GraphKeys.RESOURCES, v1.GraphKeys.LOCAL_RESOURCES):
        for resource in graph.get_collection(key):
            if not session.run(resource.is_initialized):
                session.run(resource.create)
    session.run(graph.get_collection(v1.GraphKeys.TABLE_INITIALIZERS))
