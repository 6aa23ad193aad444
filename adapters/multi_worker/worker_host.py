"""One process of a `fit` on several processes, put together as a host."""

from __future__ import annotations

from hookbridge.adapters.fit_loop.fit_graph import FitGraph
from hookbridge.adapters.fit_loop.fit_session import FitSession
from hookbridge.adapters.fit_loop.installation import Installation
from hookbridge.adapters.fit_loop.native_step import NativeStep
from hookbridge.adapters.hooked_loop.hooked_run import HookedRun
from hookbridge.adapters.hooked_loop.host import LoopHost
from hookbridge.adapters.live_session.session import LiveSession
from hookbridge.adapters.multi_worker.worker_step import WorkerStep


def worker_host(run: HookedRun) -> LoopHost:
    """The host of a run in one of several processes."""
    graph = FitGraph(run.model)
    fit = NativeStep(run, graph, Installation(run.model))
    step = WorkerStep(run, fit)

    def make_session() -> LiveSession:
        return graph.make_session(step.run_step, fit.native.functions)

    return LoopHost(graph, FitSession(run, graph, make_session), step)
