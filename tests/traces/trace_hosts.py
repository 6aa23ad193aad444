"""The hosts of the scenarios: sessions, callables of sessions, and live sessions."""

from __future__ import annotations

import contextlib
import importlib
import types
from collections.abc import Iterator
from typing import Any
from unittest import mock

import tensorflow as tf

from hookbridge.adapters.keras_model import optimizers, variables
from hookbridge.adapters.live_session.global_step import GlobalStep
from hookbridge.adapters.live_session.graph import LiveGraph
from hookbridge.adapters.live_session.session import LiveSession
from hookbridge.adapters.live_session.step_names import StepNames
from hookbridge.ground import compat
from hookbridge.jobs.loops.callable_session import CallableSession, CallableSessionHook

v1 = tf.compat.v1

# TensorFlow's session manager looks up the class of its sessions in this module. It is
# imported by name: TensorFlow 2.15 has no attribute `tensorflow.python` once other
# parts of it have been loaded.
MANAGER = importlib.import_module("tensorflow.python.training.session_manager")


class SessionHost:
    """The real thing: a `tf.Graph` and a `tf.compat.v1.Session`."""

    # The class whose `run` does the runs of a training loop in the end.
    session_class: type = v1.Session
    hooks: tuple[Any, ...] = ()  # each session gets them after those of a scenario

    def graph(self) -> contextlib.AbstractContextManager[Any]:
        """A fresh default graph."""
        return tf.Graph().as_default()  # type: ignore[no-any-return]


class CallableHost(SessionHost):
    """Sessions that run through callables, as in `hb.loops.training_session`.

    Even the first run of a set of fetches goes through one: most scenarios are too
    short to repeat a set. `calls` counts these runs.
    """

    session_class = CallableSession
    hooks = (CallableSessionHook(),)

    def __init__(self) -> None:
        self.calls = 0

    @contextlib.contextmanager
    def graph(self) -> Iterator[Any]:
        make = CallableSession._callable

        def counted(session: CallableSession, *args: Any) -> Any:
            call = make(session, *args) or make(session, *args)
            self.calls += call is not None
            return call

        with (
            mock.patch.object(CallableSession, "_callable", counted),
            tf.Graph().as_default() as graph,
        ):
            yield graph


class LiveHost(SessionHost):
    """Live sessions on a Keras model, of TensorFlow's own `MonitoredTrainingSession`.

    Its session manager makes a `LiveSession` where it would make a session.
    """

    session_class = LiveSession

    def __init__(self, keras: Any) -> None:
        model = keras.Sequential(
            [keras.Input([2]), keras.layers.Dense(1, name="out")], name="tiny"
        )
        model.compile("sgd", "mse")
        self._model = model
        self._steps: dict[Any, GlobalStep] = {}

    @contextlib.contextmanager
    def graph(self) -> Iterator[LiveGraph]:
        model = self._model
        with compat.private("eager_mode")():
            step = GlobalStep(model)
        graph = LiveGraph(
            StepNames(model.name, ["out"]),
            variables.model_variables(model),
            step.variable,
            optimizers.learning_rate_variable(model.optimizer),
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
