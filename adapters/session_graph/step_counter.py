"""The global step of a training run, read as seldom as is safe."""

from __future__ import annotations

from typing import Any

from hookbridge.adapters.session_graph import raw_runs
from hookbridge.adapters.session_graph.steps import Step, StepGraph


class StepCounter:
    """Tells when the global step can be counted and when it has to be read.

    Where nothing but the one train op of a session in this process moves it, by a
    number that stands in the graph, it is counted. Everywhere else (a session on a
    server, which other workers share; `SyncReplicasOptimizer`; several train ops; an
    increment that is computed) each step reads it together with what it fetches.

    Args:
      variable: the global step, or None.
      steps: which runs are training steps.

    Attributes:
      variable: the global step, or None.
      exact: whether it is counted.
      stale: whether it may have been moved by a run that is no step of the loop: one
        through the raw session, or one that failed.
    """

    def __init__(self, variable: Any, steps: StepGraph) -> None:
        self.variable = variable
        self._steps = steps
        self._session: Any = None
        self._member: Any = None
        self.exact = False
        self.stale = False

    def bind(self, session: Any, member: Any) -> None:
        """Follows a session.

        Args:
          session: the raw session.
          member: the hook that stands in the fetches of every step of the loop.
        """
        self._member = member
        if session is not self._session:
            self._session = session
            watched = raw_runs.watch(session, self)
            here = getattr(session, "sess_str", None) in (b"", "")
            self.exact = watched and here and len(self._steps.movers) == 1
        self.stale = False

    def read(self, session: Any) -> int:
        """The global step of the session."""
        self.stale = False
        return int(session.run(self.variable))

    def after(
        self, before: int, adds: int | None, count: int | None, run_context: Any
    ) -> int:
        """The global step after a step of the loop.

        Args:
          before: the global step before it.
          adds: what `adds` said of the step.
          count: the counter as it was read with the step, or None if it was not.
          run_context: of the step.
        """
        if adds is not None and not self.stale:
            return before + adds
        if count is not None:
            self.stale = False
            return count
        if self.variable is not None and (self._steps.movers or self._steps.pushes):
            return self.read(run_context.session)
        return before + 1

    def confirmed(self, counted: int, run_context: Any) -> int:
        """Reads the global step; counts no more if it is not what was counted."""
        step = self.read(run_context.session)
        if step != counted:
            # Something that cannot be seen from here moves it too.
            self.exact = False
        return step

    def adds(self, step: Step) -> int | None:
        """By how much a run moves the global step, or None if it has to be read."""
        return step.adds if self.exact else None

    def run_seen(self, fetches: Any) -> bool:
        """See `raw_runs.Listener`."""
        if type(fetches) is dict and self._member in fetches:
            return False
        if not self._writes(fetches):
            return False
        self.stale = True
        return True

    def callable_seen(self, fetches: Any) -> None:
        """See `raw_runs.Listener`."""
        ours = type(fetches) is dict and self._member in fetches
        if not ours and self._writes(fetches):
            self.exact = False

    def _writes(self, fetches: Any) -> bool:
        try:
            return self._steps.writes(fetches)
        except (TypeError, ValueError, KeyError):
            return False  # no fetches at all, which the run will say
