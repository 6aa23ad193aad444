"""`fit`, `evaluate` and `predict` of a model in a v1 graph, put together as a host."""

from __future__ import annotations

from hookbridge.adapters.graph_fit.function_step import FunctionStep
from hookbridge.adapters.graph_fit.keras_graph import KerasGraph
from hookbridge.adapters.graph_fit.keras_session import GraphSession
from hookbridge.adapters.hooked_loop.host import LoopHost
from hookbridge.adapters.hooked_loop.loop import HookedLoop


def graph_host(loop: HookedLoop) -> LoopHost:
    """The host of a run in Keras's loops of a v1 graph; hooks get Keras's session."""
    graph = KerasGraph(loop)
    session = GraphSession(loop, graph)
    return LoopHost(graph, session, FunctionStep(loop, graph, session))
