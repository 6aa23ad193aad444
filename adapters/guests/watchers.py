"""Notifies observers, such as a profile, when a guest is wrapped or joins a run.

The converters report each wrapper, and the wrappers report each run that they join.
Without a watcher, a report costs one look at an attribute.
"""

from __future__ import annotations

from typing import Any

from hookbridge.adapters.guests.guest_record import Wrapper

_MARK = "_hookbridge_watcher"


def watch(guest: object, watcher: Any) -> None:
    """From now on `watcher.wrapped(wrapper)` and `joined(run)` report about a guest."""
    if hasattr(guest, "__dict__"):
        vars(guest)[_MARK] = watcher


def unwatch(guest: object) -> None:
    if hasattr(guest, "__dict__"):
        vars(guest).pop(_MARK, None)


def tell_wrapped(item: object) -> None:
    """Reports the wrapper that a converter has made, if it has made one."""
    if isinstance(item, Wrapper):
        watcher = getattr(item.guest, _MARK, None)
        if watcher is not None:
            watcher.wrapped(item)


def tell_joined(guest: object, run: Any) -> None:
    """Reports the run that a guest takes part in."""
    watcher = getattr(guest, _MARK, None)
    if watcher is not None:
        watcher.joined(run)
