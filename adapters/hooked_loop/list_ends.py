"""The first and the last callback of a `fit`: around the events of all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hookbridge.adapters.guests.any_flavour import Inserted
from hookbridge.adapters.guests.guest_record import unwrapped
from hookbridge.ground import compat
from hookbridge.ground.patching import assign
from hookbridge.ground.protocols import CallbackList

# Event -> what is called in its place, with the arguments that Keras gives.
Calls = Mapping[str, Callable[..., None]]


class _End(Inserted):
    """A callback whose events are what it was given."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        for event, call in calls.items():
            setattr(self, event, call)


def calling_list() -> Any:
    """Return the `CallbackList` that calls now, None if a callback is called alone."""
    names = compat.running_locals("callback_list")
    return None if names is None else names["self"]


def call_before_others(callback_list: CallbackList, calls: Calls) -> None:
    """Put a callback before all of a `CallbackList`."""
    # A new list: Keras goes through the old one now.
    assign(callback_list, callbacks=[_End(calls), *callback_list.callbacks])


def call_after_others(callback_list: CallbackList, calls: Calls) -> None:
    """Put a callback after all of a `CallbackList`, unless it has one with `calls`."""
    if not any(
        isinstance(item, _End) and item.calls == calls
        for item in map(unwrapped, callback_list.callbacks)
    ):
        callback_list.callbacks.append(_End(calls))
