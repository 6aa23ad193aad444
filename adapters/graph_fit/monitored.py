"""The hooks of one run, driven by `MonitoredSession` over Keras's session."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from hookbridge.adapters.fit_loop import refusals
from hookbridge.adapters.fit_loop.monitored import (
    HookWithoutEnd,
    not_the_end_of_data,
    scaffold_of,
)
from hookbridge.adapters.graph_fit import optimizer
from hookbridge.adapters.graph_fit.global_step import GraphCollections, step_of
from hookbridge.adapters.graph_fit.hook_variables import HookVariables
from hookbridge.adapters.graph_fit.names import GraphNames
from hookbridge.adapters.graph_fit.session import KerasSession
from hookbridge.adapters.graph_fit.start import Creator
from hookbridge.adapters.graph_fit.step import StepCall

v1 = tf.compat.v1


class MonitoredHooks:
    """The hooks of one run, with what they need on the graph while the run goes on.

    Args:
      model: the Keras model.
      hooks: the hooks, in the order of the callback list.
      session: Keras's session, as hooks get it.
    """

    def __init__(self, model: Any, hooks: Sequence[Any], session: KerasSession) -> None:
        self._model = model
        self._hooks = hooks
        self._session = session
        self._graph = session.graph
        self._collections = GraphCollections(self._graph)
        self._variables = HookVariables(self._graph)
        self._names: GraphNames
        self._monitored: Any = None

    def start(self, mode: str, step: StepCall) -> None:
        """Calls `begin` and `after_create_session`.

        Args:
          mode: `train`, `test` or `predict`.
          step: the first step, which has not run yet.
        """
        session, graph, model = self._session, self._graph, self._model
        counter = step_of(model, session)
        if not session.run(v1.is_variable_initialized(counter)):
            session.run(counter.initializer)
        for hook in self._hooks:
            refusals.check_start(hook, int(session.run(counter)))
        self._collections.enter(counter)
        aliases = {"global_step": v1.convert_to_tensor(counter)}
        rate = optimizer.rate_tensor(model, counter)
        if rate is not None:
            aliases["learning_rate"] = rate
        if mode == "train":
            aliases.update(optimizer.gradients(model))
        if mode != "predict":
            aliases.update(step.fetches)
        self._names = GraphNames(model, graph, aliases)
        try:
            with self._names.installed(), self._variables.made():
                self._monitored = v1.train.MonitoredSession(
                    session_creator=Creator(
                        session,
                        scaffold_of(self._hooks),
                        self._variables.again,
                        lambda: self._collections.add_saver(counter),
                    ),
                    hooks=[HookWithoutEnd(hook) for hook in self._hooks],
                )
        except (StopIteration, tf.errors.OutOfRangeError) as e:
            raise not_the_end_of_data(e) from e
        finally:
            graph._unsafe_unfinalize()

    @contextlib.contextmanager
    def _final(self) -> Iterator[None]:
        """A context with a final graph, for hooks; Keras adds to it between steps."""
        graph = self._graph
        was_final = graph.finalized
        graph.finalize()
        try:
            with graph.as_default(), self._names.installed():
                yield
        finally:
            if not was_final:
                graph._unsafe_unfinalize()

    def run(
        self, step: StepCall, values: Any, options: Any, run_metadata: Any
    ) -> tuple[Any, bool]:
        """Runs a step with the events of all hooks.

        Returns:
          What Keras expects of the step, and whether a hook has asked for a stop.
        """
        with self._final():
            if options is not None:  # hooks' options are merged into it
                copied = v1.RunOptions()
                copied.CopyFrom(options)
                options = copied
            result = self._monitored.run(
                step.fetches, step.feed_dict(values), options, run_metadata
            )
            return result, self._monitored.should_stop()

    def end(self, hook: Any) -> None:
        """The `end` of one hook."""
        with self._final():
            hook.end(self._session)

    def close(self) -> None:
        """Closes the monitored session after a clean finish."""
        with self._final():
            self._monitored.close()

    def fail(self) -> None:
        """Closes the session in the handler of an exception, without any `end`."""
        if self._monitored is not None:
            with self._final():
                self._monitored.__exit__(*sys.exc_info())

    def step_aside(self) -> None:
        """Takes from the graph what hooks look for, until `come_back`."""
        self._collections.leave()

    def come_back(self) -> None:
        """Undoes `step_aside`."""
        self._collections.enter_again()

    def leave(self) -> None:
        """Removes from the graph's collections what hooks added in `begin`."""
        self._variables.leave()
