"""Guests in monitored sessions that train."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge import patching
from hookbridge.adapters.session_graph.steps import StepGraph
from hookbridge.run.joining.joiner import Joiner


def join(joiner: Joiner) -> None:
    """Guests join every monitored session whose graph can train."""
    train = tf.compat.v1.train
    monitored = train.MonitoredSession.__init__
    singular = train.SingularMonitoredSession.__init__

    def joined(kind: str, hooks: Any) -> Any:
        if joiner.is_inside or not trains(tf.compat.v1.get_default_graph()):
            return hooks
        return [*(hooks or ()), *joiner.hooks(kind)]

    def of_monitored(
        self: Any, session_creator: Any = None, hooks: Any = None, *args: Any, **kw: Any
    ) -> None:
        both = joined("MonitoredSession", hooks)
        with joiner.inside():
            monitored(self, session_creator, both, *args, **kw)

    def of_singular(self: Any, hooks: Any = None, *args: Any, **kw: Any) -> None:
        both = joined("SingularMonitoredSession", hooks)
        with joiner.inside():
            singular(self, both, *args, **kw)

    for kind, init in (
        (train.MonitoredSession, of_monitored),
        (train.SingularMonitoredSession, of_singular),
    ):
        methods = {
            name: _inside(joiner, getattr(kind, name))
            for name in ("run", "run_step_fn", "close", "__exit__")
        }
        patching.InstanceMethods(kind, {**methods, "__init__": init}).install()


def trains(graph: Any) -> bool:
    """Whether a run on a graph can be a training step."""
    return StepGraph(graph, tf.compat.v1.train.get_global_step(graph)).trains


def _inside(joiner: Joiner, method: Callable[..., Any]) -> Callable[..., Any]:
    def marked(self: Any, *args: Any, **named: Any) -> Any:
        with joiner.inside():
            return method(self, *args, **named)

    return marked
