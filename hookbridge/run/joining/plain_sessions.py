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


def join(joiner: Joiner) -> None:
    """From now on the joiner notes plain sessions that train."""
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
            steps = StepGraph(graph, tf.compat.v1.train.get_global_step(graph))
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
