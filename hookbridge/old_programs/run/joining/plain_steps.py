"""A recorder around the training steps of plain sessions, which call no hooks."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge.adapters.session_graph.steps import StepFinder
from hookbridge.ground import collected, patching
from hookbridge.ground.protocols import Graph, Session
from hookbridge.old_programs.run.joining.joiner import Joiner
from hookbridge.reference.recordings.recording_writer import records_here

v1 = tf.compat.v1

_GOES_ON = (
    "hookbridge record: all steps are recorded. Nothing can ask a loop around a plain "
    "session to stop (--then_stop), so the program goes on."
)


class TrainingGraphs:
    """The graphs of plain sessions, and the steps that were found in them."""

    def __init__(self) -> None:
        self._steps: weakref.WeakKeyDictionary[Any, tuple[int, StepFinder]] = (
            weakref.WeakKeyDictionary()
        )

    def is_step(self, graph: Graph, fetches: object) -> bool:
        """Return whether a run of these fetches trains."""
        version, steps = self._steps.get(graph, (-1, None))
        if steps is None or version != graph.version:
            steps = StepFinder(graph, collected.global_step(graph))
            self._steps[graph] = graph.version, steps
        try:
            return steps.trains and steps.kind_of(fetches).step is not None
        except Exception:  # fetches that the run itself will refuse
            return False


def record(joiner: Joiner, run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `Session.run` whose training steps are recorded, each session by itself.

    Only the thread of a session's first step is recorded: a step of another one may
    come in the middle.
    """
    graphs = TrainingGraphs()
    recorders: weakref.WeakKeyDictionary[Any, tuple[int, Any]] = (
        weakref.WeakKeyDictionary()
    )

    def hook_of(session: Session, fetches: object) -> Any:
        thread, hook = recorders.get(session, (threading.get_ident(), None))
        if thread != threading.get_ident() or (hook is not None and hook.is_done):
            return None
        if not graphs.is_step(session.graph, fetches):
            return None
        if hook is None:
            if not records_here():
                return None
            hook = joiner.recorder()
            with session.graph.as_default():
                hook.begin()
            recorders[session] = thread, hook
        return hook

    def recorded(
        self: Any,
        fetches: object,
        feed_dict: object = None,
        options: object = None,
        run_metadata: object = None,
    ) -> Any:
        hook = None if joiner.is_inside else hook_of(self, fetches)
        if hook is None:
            return run(self, fetches, feed_dict, options, run_metadata)
        with joiner.inside():
            arguments = v1.train.SessionRunArgs(fetches, feed_dict)
            context = v1.train.SessionRunContext(arguments, self)
            more = hook.before_run(context)
            both = [fetches, more.fetches]
            values, of_hook = run(self, both, feed_dict, options, run_metadata)
            hook.after_run(
                context, v1.train.SessionRunValues(of_hook, options, run_metadata)
            )
            if context.stop_requested:
                print(_GOES_ON, file=sys.stderr)
        return values

    return recorded


def report(joiner: Joiner, run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `Session.run` that reports a graph's training as not joined."""
    graphs = TrainingGraphs()
    noted: weakref.WeakSet[Any] = weakref.WeakSet()

    def reported(self: Any, fetches: object, *args: Any, **named: Any) -> Any:
        is_new = not joiner.is_inside and self.graph not in noted
        if is_new and graphs.is_step(self.graph, fetches):
            noted.add(self.graph)
            joiner.note_unjoined(
                f"{type(self).__name__}.run",
                "a plain session calls no hooks; `MonitoredTrainingSession` does",
            )
        return run(self, fetches, *args, **named)

    return reported


def join(joiner: Joiner) -> None:
    """Let recorders join plain sessions, and report them to other guests."""
    for kind in (v1.Session, v1.InteractiveSession):
        run = kind.run
        if joiner.has_recorders:
            run = record(joiner, run)
        if joiner.has_others:
            run = report(joiner, run)
        patching.Patches(kind, {"run": run}).install()
