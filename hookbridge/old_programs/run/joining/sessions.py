"""Guests in monitored sessions that train."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge.adapters.session_graph.steps import StepFinder
from hookbridge.ground import collected, patching
from hookbridge.ground.protocols import Context, Graph
from hookbridge.old_programs.run.joining import plain_steps, servers
from hookbridge.old_programs.run.joining.joiner import Joiner


def join(joiner: Joiner) -> None:
    """Guests join every monitored session whose graph can train."""

    def with_guests(hooks: list[Any]) -> list[Any]:
        if joiner.is_inside or not trains(tf.compat.v1.get_default_graph()):
            return hooks
        return [*hooks, *joiner.hooks()]

    change_hooks(with_guests, joiner.inside)
    kind = kind_of_sessions()
    methods = {
        name: _inside(joiner, getattr(kind, name))
        for name in ("run", "run_step_fn", "close", "__exit__")
    }
    patching.InstanceMethods(kind, methods).install()
    plain_steps.join(joiner)


def change_hooks(
    hooks_of: Callable[[list[Any]], list[Any]],
    making: Callable[[], Context] = contextlib.nullcontext,
) -> None:
    """Give other hooks to each monitored session that is made from now on.

    Args:
      hooks_of: returns all hooks of a session, from those that its program gives it.
      making: returns the context in which the session is made.
    """
    servers.follow()
    kind = kind_of_sessions()
    init = kind.__init__

    def joined(
        self: Any, session_creator: object, hooks: Any, *args: Any, **named: Any
    ) -> None:
        all_hooks = hooks_of(list(hooks or ()))
        with making():
            init(self, session_creator, all_hooks, *args, **named)

    patching.InstanceMethods(kind, {"__init__": joined}).install()


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
