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
    """Let guests join every monitored session whose graph can train."""

    def with_guests(hooks: list[Any]) -> list[Any]:
        if joiner.is_inside or not trains(tf.compat.v1.get_default_graph()):
            return hooks
        return [*hooks, *joiner.hooks()]

    def inside(method: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
        with joiner.inside():
            return method(*args, **named)

    change_hooks(with_guests, joiner.inside)
    patching.wrap(
        kind_of_sessions(),
        run=inside,
        run_step_fn=inside,
        close=inside,
        __exit__=inside,
    )
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

    def joined(
        init: Callable[..., None],
        self: Any,
        /,
        session_creator: object,
        hooks: Any,
        *args: Any,
        **named: Any,
    ) -> None:
        all_hooks = hooks_of(list(hooks or ()))
        with making():
            init(self, session_creator, all_hooks, *args, **named)

    patching.wrap(kind_of_sessions(), __init__=joined)


def kind_of_sessions() -> Any:
    """Return the class that all monitored sessions derive from."""
    return tf.compat.v1.train.MonitoredSession.__base__


def trains(graph: Graph) -> bool:
    """Return whether a run on a graph can be a training step."""
    return StepFinder(graph, collected.global_step(graph)).trains
