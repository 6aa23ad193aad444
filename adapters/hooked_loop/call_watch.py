"""Reports hooks that were given to a host and never called.

A host that trains without the function that Keras makes for each step, such as a user's
own loop with Keras's `CallbackList`, would ignore hooks silently. The complaint is an
error where somebody can catch it, and else a line of the log; a command of hookbridge
then ends with exit code 1.
"""

from __future__ import annotations

import atexit
import weakref

from absl import logging

from hookbridge import errors
from hookbridge.adapters.guests import kinds
from hookbridge.adapters.hooked_loop.hooked_run import HookedRun
from hookbridge.adapters.keras_model.optimizers import as_int, counter_of, optimizer_of
from hookbridge.ground.processes import exit_codes
from hookbridge.ground.protocols import Hook, KerasModel


class CallWatch:
    """Watches one run of one hook."""

    def __init__(
        self, wrapper: object, hook: Hook, model: KerasModel, run: HookedRun
    ) -> None:
        self._complaint = (
            f"`{kinds.name_of(hook)}` was given to a loop of the model `{model.name}` "
            "and never called: the loop makes its steps without the function that "
            "Keras makes for them (`model.make_train_function()`). Train with "
            "`model.fit` or `model.train_on_batch`."
        )
        self._counter = counter_of(optimizer_of(model))
        self._run = run
        self._before = self._steps()
        atexit.unregister(_report_all)
        atexit.register(_report_all)
        exit_codes.ask_at_end(_exit_code)
        _watched.add(self)
        # The run also ends when the host drops the wrapper.
        self._wrapper_dropped = weakref.finalize(wrapper, _report, self)
        self._wrapper_dropped.atexit = False

    def check(self, *, has_stepped: bool = False) -> None:
        """Refuse a hook that has not been called, at an event that follows a step."""
        # `has_stepped` says that the event itself proves that a step was made.
        if self.is_broken(has_stepped=has_stepped):
            self.end()
            raise errors.NeverCalledError(self._complaint, see="guest without events")

    def is_broken(self, *, has_stepped: bool = False) -> bool:
        """Return whether the hook should have been called and was not."""
        if not self._run.waits:
            return False
        return has_stepped or self._steps() != self._before

    def end(self) -> None:
        self._wrapper_dropped.detach()
        _watched.discard(self)

    def tell(self) -> None:
        """Log the complaint: nobody could catch an exception here."""
        logging.error("hookbridge: NeverCalledError: %s", self._complaint)
        _told.append(self._complaint)

    def _steps(self) -> int | None:
        try:
            return as_int(self._counter)
        except Exception:  # in a v1 graph, or on a server that is gone
            return None


_watched: weakref.WeakSet[CallWatch] = weakref.WeakSet()
_told: list[str] = []  # complaints since `_exit_code` was asked last


def _report(watch: CallWatch) -> None:
    if watch.is_broken():
        watch.tell()
    _watched.discard(watch)


def _report_all() -> None:
    for watch in list(_watched):
        _report(watch)


def _exit_code() -> int:
    """Return what the hooks of this process say of its end."""
    _report_all()
    complaints = len(_told)
    _told.clear()
    return exit_codes.FAILED if complaints else exit_codes.DONE
