"""`fit` under `ParameterServerStrategy`, put together as a host."""

from __future__ import annotations

from hookbridge.adapters.fit_loop.fit_graph import FitGraph
from hookbridge.adapters.fit_loop.fit_session import FitSession
from hookbridge.adapters.hooked_loop.hooked_run import HookedRun
from hookbridge.adapters.hooked_loop.host import LoopHost
from hookbridge.adapters.parameter_server.cluster_step import ClusterStep


def cluster_host(run: HookedRun) -> LoopHost:
    """The host of a run whose steps are scheduled on remote workers."""
    graph = FitGraph(run.model)
    step = ClusterStep(run, graph)
    return LoopHost(graph, FitSession(run, graph, step.make_session), step)
