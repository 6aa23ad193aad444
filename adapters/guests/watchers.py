"""Who wants to know where a guest goes: a profile.

The converters tell of each wrapper, and the wrappers of each run that they join. A
guest that nobody watches costs one look.
"""

from __future__ import annotations

from typing import Any, Protocol

from hookbridge.adapters.guests import kinds

_MARK = "_hookbridge_watcher"


class Watcher(Protocol):
    """What is told."""

    def wrapped(self, wrapper: Any) -> None:
        """A guest has been wrapped for the other loop."""

    def joined(self, run: Any) -> None:
        """A guest takes part in a run of `fit`."""


def watch(guest: Any, watcher: Watcher) -> None:
    """From here on the watcher is told of a guest."""
    if hasattr(guest, "__dict__"):
        vars(guest)[_MARK] = watcher


def unwatch(guest: Any) -> None:
    """Ends `watch`."""
    if hasattr(guest, "__dict__"):
        vars(guest).pop(_MARK, None)


def tell_wrapped(item: Any) -> None:
    """Tells of what a converter has made of a guest."""
    watcher = getattr(kinds.unwrapped(item), _MARK, None)
    if watcher is not None and isinstance(item, kinds.Wrapper):
        watcher.wrapped(item)


def tell_joined(guest: Any, run: Any) -> None:
    """Tells of the run that a guest takes part in."""
    watcher = getattr(guest, _MARK, None)
    if watcher is not None:
        watcher.joined(run)
