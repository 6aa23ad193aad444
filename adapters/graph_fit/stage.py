"""What hooks see of a model in a v1 graph: Keras's own graph and session."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge.adapters.graph_fit import optimizer
from hookbridge.adapters.graph_fit.global_step import GraphCollections, step_of
from hookbridge.adapters.graph_fit.hook_variables import HookVariables
from hookbridge.adapters.graph_fit.names import GraphNames
from hookbridge.adapters.graph_fit.session import KerasSession
from hookbridge.adapters.hooked_loop.host import Stage

v1 = tf.compat.v1


class GraphStage(Stage):
    """Keras's session, with what hooks need on its graph while a run goes on."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._is_begun = False
        self._collections: GraphCollections | None = None
        self._variables: HookVariables
        self._names: GraphNames

    def session_over(self, session: Any) -> KerasSession:
        """The session of hooks over Keras's session, which may be a new one."""
        mine: KerasSession | None = self.session
        if mine is None or mine.native is not session:
            mine = self.session = KerasSession(session)
        return mine

    def open(self, mode: str, fetches: Mapping[str, Any]) -> int:
        """Prepares the graph for `begin`; returns the global step."""
        session, graph, model = self.session, self.session.graph, self._model
        with graph.as_default():
            self._collections = GraphCollections(graph)
            self._variables = HookVariables(graph)
            counter = self._counter = step_of(model, session)
            if not session.run(v1.is_variable_initialized(counter)):
                session.run(counter.initializer)
            self._collections.enter(counter)
            aliases = {"global_step": v1.convert_to_tensor(counter)}
            rate = optimizer.rate_tensor(model, counter)
        if rate is not None:
            aliases["learning_rate"] = rate
        if mode == "train":
            aliases.update(optimizer.gradients(model))
        if mode != "predict":
            aliases.update(fetches)
        self._names = GraphNames(model, graph, aliases)
        return int(session.run(counter))

    def create_session(self, scaffold: Any, is_first: bool) -> KerasSession:
        """See `Stage`.

        Variables of the model keep their values; those that hooks made in `begin` get
        their initial values.
        """
        session: KerasSession = self.session
        if is_first:
            assert self._collections is not None
            _initialise(session, self._variables.again)
            self._collections.add_saver(self._counter)
            if scaffold is not None:
                _run_scaffold(session, scaffold)
            session.graph.finalize()
        return session

    @contextlib.contextmanager
    def hooks_run(self) -> Iterator[None]:
        """See `Stage`: the graph is final for hooks, after the first time."""
        graph = self.session.graph
        was_final = graph.finalized
        with (
            graph.as_default(),
            self._names.installed(),
            contextlib.ExitStack() as at_start,
        ):
            if self._is_begun:
                graph.finalize()
            else:
                at_start.enter_context(self._variables.made())
            try:
                yield
            finally:
                self._is_begun = True
                if not was_final:  # Keras adds to it between steps
                    graph._unsafe_unfinalize()

    def step_aside(self) -> None:
        """Takes from the graph what hooks look for, until `come_back`."""
        if self._collections is not None:
            self._collections.leave()

    def come_back(self) -> None:
        if self._collections is not None:
            self._collections.enter_again()

    def leave(self) -> None:
        """Removes from the graph's collections what hooks added in `begin`."""
        if self._collections is not None:
            self._variables.leave()


def _run_scaffold(session: Any, scaffold: Any) -> None:
    """Finalizes the scaffold of hooks and runs the user's own ops in it.

    The ops that `finalize` makes initialise everything: they would reset the model.
    """
    own = (scaffold.init_op, scaffold.local_init_op)
    scaffold.finalize()
    if own[0] is not None:
        session.run(own[0], scaffold.init_feed_dict)
    if scaffold.init_fn is not None:
        scaffold.init_fn(session)
    if own[1] is not None:
        session.run(own[1])


def _initialise(session: Any, again: Sequence[Any]) -> None:
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
