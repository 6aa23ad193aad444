"""Which guest stops a session, and how."""

from __future__ import annotations

import sys
import traceback
import weakref

from hookbridge.adapters.callback_to_hook import CallbackToHook
from hookbridge.adapters.guests import kinds
from hookbridge.adapters.guests.guest_record import Wrapper
from hookbridge.ground.patching import Patches
from hookbridge.ground.protocols import RunContext
from hookbridge.ground.step_errors import END_OF_DATA

# Said where nobody knows who asked, as after `request_stop` of a coordinator.
SOMEBODY = "a hook or callback asked for a stop"


class StopRequests:
    """Notes who asks for the stop of a session, by the context of each of its runs."""

    def __init__(self) -> None:
        self.reason: str = SOMEBODY

    def watch(self, run_context: RunContext) -> None:
        """Note who calls `request_stop` of a run's context from now on."""
        if "request_stop" not in vars(run_context):
            method = _Request(run_context, self)
            Patches(run_context, {"request_stop": method}).install()


class _Request:
    """`request_stop` of a context, which it holds weakly: the context holds it."""

    def __init__(self, run_context: RunContext, requests: StopRequests) -> None:
        self._context = weakref.ref(run_context)
        self._requests = requests

    def __call__(self) -> None:
        context = self._context()
        if context is None:
            return
        if not context.stop_requested:
            self._requests.reason = _reason()
        type(context).request_stop(context)


def reason_of(error: BaseException) -> str:
    """Return why an error stops a session, and the guest that raised it."""
    is_end, name = isinstance(error, END_OF_DATA), type(error).__name__
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        guest = frame.f_locals.get("self")
        if _is_guest(guest):
            who = f"`{kinds.name_of(guest)}`"
            if is_end:
                return f"{who} asked for a stop by {name}"
            return f"{who} raised {name}: {error}"
    return "its data ended" if is_end else f"{name}: {error}"


def _is_guest(item: object) -> bool:
    """Return whether an object is a user's hook or callback, and none of this room."""
    is_ours = type(item).__module__.startswith("hookbridge.jobs.loops.")
    if is_ours or isinstance(item, Wrapper):
        return False
    return kinds.is_hook(item) or kinds.is_callback(item)


def _reason() -> str:
    """Return why a hook calls `request_stop`, and the hook's name."""
    for frame, _ in traceback.walk_stack(sys._getframe(2)):
        hook = frame.f_locals.get("self")
        if isinstance(hook, CallbackToHook):
            return hook.stop_reason or SOMEBODY
        if hook is not None and kinds.is_hook(hook):
            return f"`{kinds.name_of(hook)}` asked for a stop"
    return SOMEBODY
