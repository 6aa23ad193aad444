"""What a run puts on a model's own graph, and the names that hooks find there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from hookbridge.adapters.graph_fit.garbage import is_collected_now, watch_collections
from hookbridge.adapters.graph_fit.graph_collections import GraphCollections, step_of
from hookbridge.adapters.graph_fit.graph_names import (
    GraphNames,
    gradients,
    rate_tensor,
)
from hookbridge.adapters.graph_fit.hook_variables import HookVariables
from hookbridge.adapters.hooked_loop.hooked_run import HookedRun
from hookbridge.adapters.hooked_loop.host import GraphPart
from hookbridge.adapters.hooked_loop.model_values import ModelValues
from hookbridge.adapters.keras_model.variables import model_variables
from hookbridge.ground.protocols import Session

v1 = tf.compat.v1


class KerasGraphPart(GraphPart):
    """The graph of a model that Keras trains by session runs."""

    def __init__(self, run: HookedRun) -> None:
        watch_collections()
        self._run = run
        self._is_begun = False
        self._is_built = False  # all others are there from `build` on

    def build(
        self, session: Session, mode: str | None, fetches: Mapping[str, Any]
    ) -> int:
        """Add what hooks look for; return the global step."""
        graph, model = session.graph, self._run.model
        self._graph = graph
        with graph.as_default():
            self._collections = GraphCollections(graph)
            self._variables = HookVariables(graph)
            counter = self._counter = step_of(model, session)
            if not session.run(v1.is_variable_initialized(counter)):
                session.run(counter.initializer)
            self._collections.enter(counter)
            aliases = {"global_step": v1.convert_to_tensor(counter)}
            rate = rate_tensor(model, counter)
        if rate is not None:
            aliases["learning_rate"] = rate
        if mode == "train":
            aliases.update(gradients(model))
        if mode != "predict":
            aliases.update(fetches)
        self._names = GraphNames(model, graph, aliases)
        self._is_built = True
        return int(session.run(counter))

    def make_final(self, session: Session) -> None:
        """Initialise what hooks have made, after `begin` of all."""
        # Variables of the model keep their values; those that hooks made get their
        # initial values.
        self._variables.initialise(session)
        self._collections.add_saver(self._counter)

    @property
    def step_number(self) -> int:
        return int(self._run.host.session_part.current.run(self._counter))

    def values(self) -> ModelValues:
        saved = [v.eager for v in model_variables(self._run.model) if not v.local]
        return ModelValues(self._run.host.session_part.current.run(saved))

    @property
    def can_be_read(self) -> bool:
        return not is_collected_now()

    @contextlib.contextmanager
    def calling_hooks(self) -> Iterator[None]:
        """Return a context for calls of hooks; after the first, the graph is final."""
        graph = self._graph
        was_final = graph.finalized
        with (
            graph.as_default(),
            self._names.installed(),
            contextlib.ExitStack() as at_start,
        ):
            if self._is_begun:
                graph.finalize()
            else:
                at_start.enter_context(self._variables.recording())
            try:
                yield
            finally:
                self._is_begun = True
                if not was_final:  # Keras adds to it between steps
                    graph._unsafe_unfinalize()

    def suspend(self) -> None:
        if self._is_built:
            self._collections.leave()

    def resume(self) -> None:
        if self._is_built:
            self._collections.enter_again()

    def leave(self) -> None:
        if not self._run.is_suspended:
            self.suspend()
        if self._is_built:
            self._variables.leave()
