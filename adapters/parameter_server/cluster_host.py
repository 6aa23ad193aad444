"""`fit` under `ParameterServerStrategy`, put together as a host."""

from __future__ import annotations

from hookbridge.adapters.fit_loop.fit_graph import FitGraph
from hookbridge.adapters.fit_loop.fit_session import FitSession
from hookbridge.adapters.hooked_loop.host import LoopHost
from hookbridge.adapters.hooked_loop.loop import HookedLoop
from hookbridge.adapters.parameter_server.cluster_step import ClusterStep


def cluster_host(loop: HookedLoop) -> LoopHost:
    """The host of a run whose steps are scheduled on remote workers."""
    graph = FitGraph(loop.model)
    step = ClusterStep(loop, graph)
    return LoopHost(graph, FitSession(loop, graph, step.make_session), step)
