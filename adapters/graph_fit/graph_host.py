"""`fit`, `evaluate` and `predict` of a model in a v1 graph, put together as a host."""

from __future__ import annotations

from hookbridge.adapters.graph_fit.function_step import FunctionStep
from hookbridge.adapters.graph_fit.keras_graph import KerasGraph
from hookbridge.adapters.graph_fit.keras_session import GraphSession
from hookbridge.adapters.hooked_loop.hooked_run import HookedRun
from hookbridge.adapters.hooked_loop.host import LoopHost


def graph_host(run: HookedRun) -> LoopHost:
    """The host of a run in Keras's loops of a v1 graph; hooks get Keras's session."""
    graph = KerasGraph(run)
    session = GraphSession(run, graph)
    return LoopHost(graph, session, FunctionStep(run, graph, session))
