"""Notifies observers, such as a profile, when a guest is wrapped or joins a run.

The converters report each wrapper, and the wrappers report each run that they join.
Without a watcher, a report costs one look into its record.
"""

from __future__ import annotations

from typing import Any

from hookbridge.adapters.guests.guest_record import Wrapper
from hookbridge.ground.memory import Fact

_WATCHER = Fact[Any]("guest", "watcher")


def watch(guest: object, watcher: object) -> None:
    """Let `watcher.wrapped(wrapper)` and `joined(run)` hear of a guest from now on."""
    _WATCHER.put(guest, watcher)


def unwatch(guest: object) -> None:
    _WATCHER.pop(guest)


def tell_wrapped(item: object) -> None:
    """Report the wrapper that a converter has made, if it has made one."""
    if isinstance(item, Wrapper):
        watcher = _WATCHER.get(item.guest)
        if watcher is not None:
            watcher.wrapped(item)


def tell_joined(guest: object, run: object) -> None:
    """Report the run that a guest takes part in."""
    watcher = _WATCHER.get(guest)
    if watcher is not None:
        watcher.joined(run)
