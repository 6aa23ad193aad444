"""Reports hooks that were given to a host and never called.

A host that trains without the function that Keras makes for each step, such as a user's
own loop with Keras's `CallbackList`, would ignore hooks silently.
"""

from __future__ import annotations

import atexit
import sys
import weakref
from typing import Any

from hookbridge import errors
from hookbridge.adapters.guests import kinds
from hookbridge.adapters.hooked_loop.loop import HookedLoop
from hookbridge.adapters.live_session.variables import as_int
from hookbridge.ground.patching import assign


class Silence:
    """Watches one run of one hook."""

    def __init__(self, adapter: Any, hook: Any, model: Any, loop: HookedLoop) -> None:
        self._complaint = (
            f"`{kinds.name_of(hook)}` was given to a loop of the model `{model.name}` "
            "and never called: the loop makes its steps without the function that "
            "Keras makes for them (`model.make_train_function()`). Train with "
            "`model.fit` or `model.train_on_batch`."
        )
        self._iterations = getattr(
            getattr(model, "optimizer", None), "iterations", None
        )
        self._loop = loop
        self._before = self._steps()
        if not _watched:
            atexit.register(_at_exit)
        _watched.add(self)
        # The run also ends when the host drops the adapter.
        self._of_adapter = weakref.finalize(adapter, _report, self)
        self._of_adapter.atexit = False

    def check(self, *, has_stepped: bool = False) -> None:
        """Refuses a hook that has not been called, at an event that follows a step."""
        # `has_stepped` says that the event itself proves that a step was made.
        if self.is_broken(has_stepped=has_stepped):
            self.end()
            raise errors.NeverCalledError(self._complaint, see="guest without events")

    def is_broken(self, *, has_stepped: bool = False) -> bool:
        """Whether the hook should have been called and was not."""
        if not self._loop.waits:
            return False
        return has_stepped or self._steps() != self._before

    def end(self) -> None:
        self._of_adapter.detach()
        _watched.discard(self)

    def say(self) -> None:
        """Writes to standard error: nobody could catch an exception here."""
        sys.stderr.write(f"hookbridge: NeverCalledError: {self._complaint}\n")
        sys.stderr.flush()

    def _steps(self) -> int | None:
        try:
            return as_int(self._iterations)
        except Exception:  # in a v1 graph, or on a server that is gone
            return None


_watched: weakref.WeakSet[Silence] = weakref.WeakSet()


def _report(silence: Silence) -> None:
    if silence.is_broken():
        silence.say()
    _watched.discard(silence)


def _at_exit() -> None:
    broken = [silence for silence in _watched if silence.is_broken()]
    for silence in broken:
        silence.say()
    if broken:
        # Python ignores exceptions of this function. All that it has left to do, it
        # does; then it flushes standard error, and if that fails its exit code is 120.
        assign(sys, stderr=_FailsInTheEnd(sys.stderr))


class _FailsInTheEnd:
    """Standard error, except that it cannot be flushed once the interpreter ends."""

    closed = False

    def __init__(self, stderr: Any) -> None:
        self._stderr = stderr

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stderr, name)

    def flush(self) -> None:
        if self._stderr is not None:
            self._stderr.flush()
        if sys.is_finalizing():
            raise OSError("hookbridge: a hook has never been called")
