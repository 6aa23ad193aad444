"""Guests in monitored sessions that train."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge.adapters.session_graph.steps import StepFinder
from hookbridge.ground import collected, patching
from hookbridge.ground.protocols import Graph
from hookbridge.old_programs.run.joining import plain_steps, servers
from hookbridge.old_programs.run.joining.joiner import Joiner


def join(joiner: Joiner) -> None:
    """Guests join every monitored session whose graph can train."""
    servers.follow()
    kind = kind_of_sessions()
    init = kind.__init__

    def joined(
        self: Any, session_creator: object, hooks: Any, *args: Any, **kw: Any
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
    plain_steps.join(joiner)


def kind_of_sessions() -> Any:
    """Return the class that all monitored sessions derive from."""
    return tf.compat.v1.train.MonitoredSession.__base__


def trains(graph: Graph) -> bool:
    """Return whether a run on a graph can be a training step."""
    return StepFinder(graph, collected.global_step(graph)).trains


def _inside(joiner: Joiner, method: Callable[..., Any]) -> Callable[..., Any]:
    def marked(self: Any, *args: Any, **named: Any) -> Any:
        with joiner.inside():
            return method(self, *args, **named)

    return marked
