"""Runs of a session that its hooks do not see.

`MonitoredSession.run_step_fn` hands out the raw session, and hooks have it too. What
they run there reaches no hook, though it can move the global step.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any, Protocol


class Listener(Protocol):
    """Who wants to know."""

    def run_seen(self, fetches: Any) -> bool:
        """A run is about to start; whether to tell again when it has ended."""

    def callable_seen(self, fetches: Any) -> None:
        """A callable of the fetches is being made; its runs will not be seen."""


def watch(session: Any, listener: Listener) -> bool:
    """Tells `listener` of every `session.run`, hooked or not.

    `run` and `make_callable` are covered on this one object, whatever becomes of its
    class. Session and listener do not keep each other alive.

    Args:
      session: a raw session.
      listener: called on the thread of the run.

    Returns:
      Whether it is told: an object that takes no attributes cannot be watched.
    """
    listening = weakref.ref(listener)
    run_below, make_below = _below(session, "run"), _below(session, "make_callable")

    @functools.wraps(type(session).run)
    def run(fetches: Any, *args: Any, **kwargs: Any) -> Any:
        told = listening()
        if told is None or not told.run_seen(fetches):
            return run_below()(fetches, *args, **kwargs)
        try:
            return run_below()(fetches, *args, **kwargs)
        finally:
            told.run_seen(fetches)

    @functools.wraps(type(session).make_callable)
    def make_callable(fetches: Any, *args: Any, **kwargs: Any) -> Any:
        told = listening()
        if told is not None:
            told.callable_seen(fetches)
        return make_below()(fetches, *args, **kwargs)

    try:
        session.run, session.make_callable = run, make_callable
    except AttributeError:
        return False
    return True


def _below(session: Any, name: str) -> Any:
    """A function that returns the method as it would be without the watch."""
    covered = getattr(session, "__dict__", {}).get(name)
    if covered is not None:
        return lambda: covered
    # The class may change later, and the object must not hold itself.
    own = weakref.ref(session)
    return lambda: getattr(type(own()), name).__get__(own())
