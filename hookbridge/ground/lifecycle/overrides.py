"""The events in which a guest does something: one rule for reports and delivery."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hookbridge.ground.imports.installed import KERAS
from hookbridge.ground.lifecycle.events import Kind, events_of
from hookbridge.ground.protocols import Callback

# Mode -> the methods for its batches; Keras's `train` has an older name for each.
BATCH_EVENTS = {
    "train": (
        "on_train_batch_begin",
        "on_train_batch_end",
        "on_batch_begin",
        "on_batch_end",
    ),
    "test": ("on_test_batch_begin", "on_test_batch_end"),
    "predict": ("on_predict_batch_begin", "on_predict_batch_end"),
}
_MODES = {event: mode for mode, events in BATCH_EVENTS.items() for event in events}
_BASES = ("SessionRunHook", "Callback")
# The packages whose own hooks and callbacks are stock guests.
FRAMEWORKS = ("tensorflow", *KERAS)
# Every loop calls these methods, and their base class stores what they get.
SETTERS = ("set_model", "set_params")


def overridden(
    guest: object, kind: Kind, beside: Iterable[Any] = ()
) -> tuple[str, ...]:
    """Return the events whose method does something in this guest.

    `set_model` and `set_params` count also where a callback does not override them. A
    batch method counts if Keras calls it, see `called_for`.

    Args:
      guest: a hook or callback.
      kind: which of the two.
      beside: the other callbacks of the same loop.
    """
    guests = [guest, *(b for b in beside if b is not guest)]
    return tuple(
        e.name
        for e in events_of(kind)
        if (e.name in SETTERS and callable(getattr(guest, e.name, None)))
        or (
            overrides(guest, e.name)
            and any(c is guest for c in called_for(guests, e.name))
        )
    )


def overrides(guest: object, event: str) -> bool:
    """Return whether a guest has a method of its own for an event.

    The empty methods of `SessionRunHook` and of each Keras's `Callback` do not count.
    Methods with Keras's mark for empty methods, `_is_default`, do not count either. A
    guest that derives from neither class overrides every event that it has.
    """
    method = getattr(guest, event, None)
    if not callable(method) or getattr(method, "_is_default", False):
        return False
    function = getattr(method, "__func__", method)
    return not any(
        vars(base).get(event) is function
        for base in type(guest).__mro__
        if base.__name__ in _BASES and base.__module__.split(".")[0] in FRAMEWORKS
    )


def wants_batches(callback: Callback, mode: str) -> bool:
    """Return whether Keras would call the batch methods of a callback in a mode."""
    says = getattr(callback, f"_implements_{mode}_batch_hooks", None)
    if callable(says):
        return bool(says())
    return any(overrides(callback, event) for event in BATCH_EVENTS[mode])


def _insists(callback: Callback, mode: str) -> bool:
    """Return whether a callback says itself that it wants batches."""
    question = f"_implements_{mode}_batch_hooks"
    return overrides(callback, question) and wants_batches(callback, mode)


def called_for(guests: Sequence[Any], event: str) -> list[Any]:
    """Return the guests of one loop whose method for an event is called, in order.

    Methods that do nothing are left out. A callback can say that it wants no batches
    (`_implements_train_batch_hooks` returns False). Keras calls its batch methods
    nevertheless if another callback of the same loop wants batches. A callback that
    always says yes counts too: it may get its methods during the run, as tqdm's does.
    """
    mode = _MODES.get(event)
    if mode is None:
        return [g for g in guests if overrides(g, event)]
    if not any(wants_batches(g, mode) for g in guests):
        return []
    alias = event.replace("_train_", "_")  # `on_train_batch_end` calls `on_batch_end`
    return [
        g
        for g in guests
        if overrides(g, event)
        or overrides(g, alias)
        or (callable(getattr(g, event, None)) and _insists(g, mode))
    ]


def method_for(guest: object, event: str) -> Any:
    """Return the method that is called for an event, of a guest of `called_for`.

    A callback of no Keras may have Keras's older name of a batch method alone.
    """
    method = getattr(guest, event, None)
    return method or getattr(guest, event.replace("_train_", "_"))
