"""Guests in monitored sessions that train; other sessions that train are reported."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge.adapters.session_graph.steps import StepGraph
from hookbridge.ground import patching
from hookbridge.old_programs.run.joining import servers
from hookbridge.old_programs.run.joining.joiner import Joiner

_WHY = "a plain session calls no hooks; `MonitoredTrainingSession` does"


def join(joiner: Joiner) -> None:
    """Guests join every monitored session whose graph can train.

    The joiner notes plain sessions that train: no guest can join them.
    """
    servers.follow()
    kind = kind_of_sessions()
    init = kind.__init__

    def joined(
        self: Any, session_creator: Any, hooks: Any, *args: Any, **kw: Any
    ) -> None:
        if not joiner.is_inside and trains(tf.compat.v1.get_default_graph()):
            hooks = [*(hooks or ()), *joiner.hooks()]
        with joiner.inside():
            init(self, session_creator, hooks, *args, **kw)

    methods = {
        name: _inside(joiner, getattr(kind, name))
        for name in ("run", "run_step_fn", "close", "__exit__")
    }
    patching.InstanceMethods(kind, {**methods, "__init__": joined}).install()
    _report_plain_ones(joiner)


def _report_plain_ones(joiner: Joiner) -> None:
    # Graph -> its version and the steps found in it; None once it was reported.
    graphs: weakref.WeakKeyDictionary[Any, tuple[int, Any] | None] = (
        weakref.WeakKeyDictionary()
    )

    def is_new_training(graph: Any, fetches: Any) -> bool:
        entry = graphs.get(graph, (-1, None))
        if entry is None:
            return False
        version, steps = entry
        if version != graph.version:
            steps = _steps(graph)
            graphs[graph] = graph.version, steps
        try:
            return steps.trains and steps.step_of(fetches) is not None
        except Exception:  # fetches that the run itself will refuse
            return False

    def reporting(run: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, fetches: Any, *args: Any, **named: Any) -> Any:
            if not joiner.is_inside and is_new_training(self.graph, fetches):
                graphs[self.graph] = None
                joiner.note_unjoined(f"{type(self).__name__}.run", _WHY)
            return run(self, fetches, *args, **named)

        return call

    for kind in (tf.compat.v1.Session, tf.compat.v1.InteractiveSession):
        patching.InstanceMethods(kind, {"run": reporting(kind.run)}).install()


def kind_of_sessions() -> Any:
    """The class that all monitored sessions derive from."""
    return tf.compat.v1.train.MonitoredSession.__base__


def trains(graph: Any) -> bool:
    """Whether a run on a graph can be a training step."""
    return _steps(graph).trains


def _steps(graph: Any) -> StepGraph:
    return StepGraph(graph, tf.compat.v1.train.get_global_step(graph))


def _inside(joiner: Joiner, method: Callable[..., Any]) -> Callable[..., Any]:
    def marked(self: Any, *args: Any, **named: Any) -> Any:
        with joiner.inside():
            return method(self, *args, **named)

    return marked
