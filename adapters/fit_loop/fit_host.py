"""`fit`, `evaluate` and `predict` of an eager model, put together as a host."""

from __future__ import annotations

from hookbridge.adapters.fit_loop.fit_graph import FitGraph
from hookbridge.adapters.fit_loop.fit_session import FitSession
from hookbridge.adapters.fit_loop.installation import Installation, StepInstallation
from hookbridge.adapters.fit_loop.native_step import NativeStep
from hookbridge.adapters.hooked_loop.host import LoopHost
from hookbridge.adapters.hooked_loop.loop import HookedLoop


def fit_host(
    loop: HookedLoop, installation: StepInstallation | None = None
) -> LoopHost:
    """The host of a run in Keras's loops, or where `installation` puts the run."""
    graph = FitGraph(loop.model)
    step = NativeStep(loop, graph, installation or Installation(loop.model))
    return LoopHost(graph, FitSession(loop, graph, step.make_session), step)
