"""Which events a guest does something in."""

from __future__ import annotations

from typing import Any

from hookbridge.lifecycle.events import Event, Guest, events_of


def overridden(guest: Any, kind: Guest) -> tuple[str, ...]:
    """The events whose method does something in this guest.

    A method of the base class does nothing and is left out, except `set_model` and
    `set_params`, which store what they get. A guest that is no instance of a base
    class overrides every event it has, unless the method bears Keras's own mark for
    "not overridden" (`_is_default`).
    """
    return tuple(e.name for e in events_of(kind) if _does_something(guest, e))


def _does_something(guest: Any, event: Event) -> bool:
    method = getattr(guest, event.name, None)
    if not callable(method):
        return False
    if event.name in ("set_model", "set_params"):
        return True
    if getattr(method, "_is_default", False):
        return False
    function = getattr(method, "__func__", method)
    base = "SessionRunHook" if event.guest == "hook" else "Callback"
    module = str(getattr(function, "__module__", ""))
    return not (
        getattr(function, "__qualname__", "") == f"{base}.{event.name}"
        and module.split(".")[0] in ("tensorflow", "keras", "tf_keras")
    )
