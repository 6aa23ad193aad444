"""The first and the last callback of a `fit`: around the events of all others."""

from __future__ import annotations

import weakref
from typing import Any, Protocol

from hookbridge.adapters.guests.any_flavour import Inserted
from hookbridge.adapters.guests.guest_record import unwrapped
from hookbridge.ground import compat
from hookbridge.ground.patching import assign
from hookbridge.ground.protocols import Callback


class ListObserver(Protocol):
    """Who hears before and after the events of all callbacks."""

    def none_has_begun(self, callbacks: list[Any]) -> None:
        """Before `on_train_begin`, in which callbacks may restore a backup."""

    def all_have_begun(self) -> None:
        """After `on_train_begin`."""

    def epoch_begins(self, epoch: int) -> None:
        """Before `on_epoch_begin`."""

    def epoch_has_begun(self) -> None:
        """After `on_epoch_begin`."""

    def epoch_ends(self) -> None:
        """Before `on_epoch_end`, and before the validation that precedes it."""

    def epoch_has_ended(self, epoch: int) -> None:
        """After `on_epoch_end`."""

    def training_ends(self) -> None:
        """Before `on_train_end`."""

    def all_have_ended(self) -> None:
        """After `on_train_end`."""

    def all_have_evaluated(self) -> None:
        """After `on_test_end`."""


class _End(Inserted):
    """A callback that tells an observer."""

    def __init__(self, observer: ListObserver, everyone: Any) -> None:
        self.observer = observer
        self._everyone = weakref.ref(everyone)


class _Before(_End):
    """The first callback when the training begins."""

    def on_train_begin(self, logs: Any = None) -> None:
        everyone = self._everyone()
        if everyone is not None:
            items = [unwrapped(callback) for callback in everyone.callbacks]
            self.observer.none_has_begun(items)


class _First(_End):
    """The first callback of a `fit`: no other has had the events that it gets."""

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self.observer.epoch_begins(epoch)

    def on_test_begin(self, logs: Any = None) -> None:
        self.observer.epoch_ends()

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        self.observer.epoch_ends()

    def on_train_end(self, logs: object = None) -> None:
        self.observer.training_ends()


class _Last(_End):
    """The last callback of a `fit`: all others have had the events that it gets."""

    def on_train_begin(self, logs: object = None) -> None:
        everyone = self._everyone()
        if everyone is not None:
            _put_first(everyone, _First(self.observer, everyone))
        self.observer.all_have_begun()

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self.observer.epoch_has_begun()

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        self.observer.epoch_has_ended(epoch)

    def on_test_end(self, logs: Any = None) -> None:
        self.observer.all_have_evaluated()

    def on_train_end(self, logs: object = None) -> None:
        self.observer.all_have_ended()


def _put_first(everyone: Any, callback: Callback) -> None:
    # A new list: Keras goes through the old one now.
    assign(everyone, callbacks=[callback, *everyone.callbacks])


def _calling_list() -> Any:
    """Return the `CallbackList` that calls now, None if a callback is called alone."""
    names = compat.running_locals("callback_list")
    return None if names is None else names["self"]


def add_first(observer: ListObserver) -> Any:
    """Put a first callback into the `CallbackList` that sets its model; return it.

    None if somebody calls a callback alone.
    """
    everyone = _calling_list()
    if everyone is not None:
        _put_first(everyone, _Before(observer, everyone))
    return everyone


def add_last(observer: ListObserver) -> Any:
    """Put a last callback into the `CallbackList` that begins now; return the list.

    None if somebody calls a callback alone.
    """
    everyone = _calling_list()
    if everyone is not None and not any(
        isinstance(callback, _Last) and callback.observer is observer
        for callback in map(unwrapped, everyone.callbacks)
    ):
        everyone.callbacks.append(_Last(observer, everyone))
    return everyone
