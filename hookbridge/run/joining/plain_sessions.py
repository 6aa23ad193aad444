"""Reports trainings in plain sessions: no guest can join them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge import patching
from hookbridge.adapters.session_graph.steps import StepGraph
from hookbridge.run.joining.joiner import Joiner

_WHY = "a plain session calls no hooks; `MonitoredTrainingSession` does"


class PlainSessions:
    """Looks for training steps among the runs of plain sessions."""

    def __init__(self, joiner: Joiner) -> None:
        self._joiner = joiner
        # Graph -> its version and the steps found in it; None once it was reported.
        self._graphs: weakref.WeakKeyDictionary[Any, tuple[int, Any] | None] = (
            weakref.WeakKeyDictionary()
        )

    def look(self, session: Any, fetches: Any) -> None:
        """Reports a run if it is a training step."""
        graph = session.graph
        entry = self._graphs.get(graph, (-1, None))
        if entry is None:
            return
        version, steps = entry
        if version != graph.version:
            steps = StepGraph(graph, tf.compat.v1.train.get_global_step(graph))
            self._graphs[graph] = graph.version, steps
        try:
            is_step = steps.trains and steps.step_of(fetches) is not None
        except Exception:  # fetches that the run itself will refuse
            return
        if is_step:
            self._graphs[graph] = None
            self._joiner.note_unjoined(f"{type(session).__name__}.run", _WHY)


def look_for(joiner: Joiner) -> None:
    """From now on the joiner notes plain sessions that train."""
    plain = PlainSessions(joiner)

    def reporting(run: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, fetches: Any, *args: Any, **named: Any) -> Any:
            if not joiner.is_inside:
                plain.look(self, fetches)
            return run(self, fetches, *args, **named)

        return call

    for kind in (tf.compat.v1.Session, tf.compat.v1.InteractiveSession):
        patching.InstanceMethods(kind, {"run": reporting(kind.run)}).install()
