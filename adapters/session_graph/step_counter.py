"""The global step of a training run, read as seldom as is safe."""

from __future__ import annotations

import functools
import weakref
from typing import Any

from hookbridge.adapters.session_graph.steps import StepFinder
from hookbridge.ground.patching import Patches
from hookbridge.ground.protocols import RunContext, Session, Variable


class StepCounter:
    """Tells when the global step can be counted and when it has to be read.

    It is counted if only one train op moves it, by a constant, in a session of this
    process. Otherwise each step fetches it too: on a server that other workers share,
    with `SyncReplicasOptimizer`, several train ops or a computed increment.
    """

    def __init__(self, variable: Variable, steps: StepFinder) -> None:
        self.variable = variable
        self._steps = steps
        self._session: Any = None
        self._member: Any = None
        self.is_counted: bool = False  # whether it is computed, not read
        # Whether a run that is not a step of the loop may have moved it: one through
        # the raw session (`MonitoredSession.run_step_fn` and hooks have it), which no
        # hook sees, or one that failed.
        self.stale: bool = False

    def bind(self, session: Session, member: object) -> None:
        """Follow a session; `member` is a key in the fetches of the loop's steps."""
        self._member = member
        if session is not self._session:
            self._session = session
            watched = _watch_runs(session, self)
            here = getattr(session, "sess_str", None) in (b"", "")
            self.is_counted = watched and here and len(self._steps.movers) == 1
        self.stale = False

    def read(self, session: Session) -> int:
        """Return the global step of the session."""
        self.stale = False
        return int(session.run(self.variable))

    def after(self, before: int, count: int | None, run_context: RunContext) -> int:
        """Return the global step after a step that fetched it as `count`, or None."""
        if count is not None:
            self.stale = False
            return count
        if self.variable is not None and (self._steps.movers or self._steps.pushes):
            return self.read(run_context.session)
        return before + 1

    def confirm(self, counted: int, run_context: RunContext) -> int:
        """Read the global step; stop counting if it differs from what was counted.

        Args:
          counted: where the step is by the ops that have run.
          run_context: the context of a hook's event, whose session is read.
        """
        step = self.read(run_context.session)
        if step != counted:
            # Something else moves it too.
            self.is_counted = False
        return step

    def may_move(self, fetches: object) -> bool:
        """Return whether a run that is not a step of the loop may move the step."""
        if type(fetches) is dict and self._member in fetches:
            return False
        try:
            return self._steps.kind_of(fetches).writes
        except (TypeError, ValueError, KeyError):
            return False  # no valid fetches: the run itself will raise


def _watch_runs(session: Any, counter: StepCounter) -> bool:
    """Tell a counter of every `session.run`, hooked or not, on the thread of the run.

    Session and counter do not keep each other alive. Returns False for an object
    without `__dict__`, which cannot be watched.
    """
    counting = weakref.ref(counter)
    run_below, make_below = _below(session, "run"), _below(session, "make_callable")

    @functools.wraps(type(session).run)
    def run(fetches: Any, *args: Any, **kwargs: Any) -> Any:
        counter = counting()
        if counter is None or not counter.may_move(fetches):
            return run_below()(fetches, *args, **kwargs)
        counter.stale = True
        try:
            return run_below()(fetches, *args, **kwargs)
        finally:
            counter.stale = True  # the step may have been read while it ran

    @functools.wraps(type(session).make_callable)
    def make_callable(fetches: Any, *args: Any, **kwargs: Any) -> Any:
        counter = counting()
        if counter is not None and counter.may_move(fetches):
            counter.is_counted = False  # the runs of the callable will not be seen
        return make_below()(fetches, *args, **kwargs)

    methods = {"run": run, "make_callable": make_callable}
    return Patches(session, methods).install()


def _below(session: Session, name: str) -> Any:
    """Return a function that returns the method as it would be without the watch."""
    covered = getattr(session, "__dict__", {}).get(name)
    if covered is not None:
        return lambda: covered
    # The class may change later, and the session must not hold itself alive.
    session_ref = weakref.ref(session)
    return lambda: getattr(type(session_ref()), name).__get__(session_ref())
