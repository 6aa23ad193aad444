"""The first and the last callback of a `fit`: around the events of all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hookbridge.adapters.guests.any_flavour import Inserted
from hookbridge.adapters.guests.guest_record import unwrapped
from hookbridge.ground import compat
from hookbridge.ground.patching import assign

# Event -> what is called at it, with the number of the epoch at those of epochs.
Calls = Mapping[str, Callable[..., None]]


class _End(Inserted):
    """A callback that calls what it was given at its events."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    def _call(self, event: str, *args: int) -> None:
        if event in self.calls:
            self.calls[event](*args)

    def on_train_begin(self, logs: Any = None) -> None:
        self._call("on_train_begin")

    def on_train_end(self, logs: Any = None) -> None:
        self._call("on_train_end")

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._call("on_epoch_begin", epoch)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._call("on_epoch_end", epoch)

    def on_test_begin(self, logs: Any = None) -> None:
        self._call("on_test_begin")

    def on_test_end(self, logs: Any = None) -> None:
        self._call("on_test_end")


def calling_list() -> Any:
    """Return the `CallbackList` that calls now, None if a callback is called alone."""
    names = compat.running_locals("callback_list")
    return None if names is None else names["self"]


def call_before_others(everyone: Any, calls: Calls) -> None:
    """Put a callback before all of a `CallbackList`."""
    # A new list: Keras goes through the old one now.
    assign(everyone, callbacks=[_End(calls), *everyone.callbacks])


def call_after_others(everyone: Any, calls: Calls) -> None:
    """Put a callback after all of a `CallbackList`, unless it has one with `calls`."""
    items = map(unwrapped, everyone.callbacks)
    if not any(isinstance(item, _End) and item.calls == calls for item in items):
        everyone.callbacks.append(_End(calls))
