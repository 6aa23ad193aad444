"""`fit`, `evaluate` and `predict` of an eager model, put together as a host."""

from __future__ import annotations

from hookbridge.adapters.fit_loop.fit_graph import FitGraph
from hookbridge.adapters.fit_loop.fit_session import FitSession
from hookbridge.adapters.fit_loop.installation import Installation, StepInstallation
from hookbridge.adapters.fit_loop.native_step import NativeStep
from hookbridge.adapters.hooked_loop.hooked_run import HookedRun
from hookbridge.adapters.hooked_loop.host import LoopHost


def fit_host(run: HookedRun, installation: StepInstallation | None = None) -> LoopHost:
    """The host of a run in Keras's loops, or where `installation` puts the run."""
    graph = FitGraph(run.model)
    step = NativeStep(run, graph, installation or Installation(run.model))
    return LoopHost(graph, FitSession(run, graph, step.make_session), step)
