"""A host whose sessions are live sessions on a Keras model.

Everything else is TensorFlow's own: the scenarios' `MonitoredTrainingSession`
with its session creators and session manager makes a `LiveSession` wherever it
would make a `tf.compat.v1.Session`.
"""

from __future__ import annotations

import contextlib
import importlib
import types
from collections.abc import Iterator
from typing import Any
from unittest import mock

from hookbridge import compat
from hookbridge.adapters.live_session import variables as live_variables
from hookbridge.adapters.live_session.global_step import GlobalStep
from hookbridge.adapters.live_session.graph import LiveGraph
from hookbridge.adapters.live_session.names import StepNames
from hookbridge.adapters.live_session.session import LiveSession

# TensorFlow's session manager looks up the class of its sessions in this module. It is
# imported by name: TensorFlow 2.15 has no attribute `tensorflow.python` once other
# parts of it have been loaded.
MANAGER = importlib.import_module("tensorflow.python.training.session_manager")


class LiveHost:
    """Runs scenarios in live graphs.

    Args:
      keras: the Keras flavour of the model.
    """

    session_class: type = LiveSession

    def __init__(self, keras: Any) -> None:
        model = keras.Sequential(
            [keras.Input([2]), keras.layers.Dense(1, name="out")], name="tiny"
        )
        model.compile("sgd", "mse")
        self._model = model
        self._steps: dict[Any, GlobalStep] = {}

    @contextlib.contextmanager
    def graph(self) -> Iterator[LiveGraph]:
        """A fresh live graph of the model as the default graph."""
        model = self._model
        with compat.private("eager_mode")():
            step = GlobalStep(model)
        graph = LiveGraph(
            StepNames(model.name, ["out"]),
            live_variables.model_variables(model),
            step.variable,
            live_variables.learning_rate_variable(model.optimizer),
        )
        self._steps[graph] = step
        sessions = types.SimpleNamespace(Session=self._session)
        with mock.patch.object(MANAGER, "session", sessions), graph.as_default():
            yield graph

    def session(self, graph: Any) -> LiveSession:
        """A live session on a graph of this host."""
        return LiveSession(graph, self._steps[graph], _no_step, {})

    def _session(self, target: str = "", graph: Any = None, config: Any = None) -> Any:
        return self.session(graph)


def _no_step(program: Any, feeds: Any) -> list[Any]:
    raise AssertionError("The scenario runs ops of its own, not the model's step.")
