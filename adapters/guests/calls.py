"""Calling callbacks: what each overrides, in eager mode, one event for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from hookbridge import compat

Flavour = Literal["keras2", "keras3"]

KERAS = ("keras", "tf_keras")
BATCH_EVENTS = {
    mode: tuple(
        f"on_{name}batch_{edge}"
        for name in ((f"{mode}_", "") if mode == "train" else (f"{mode}_",))
        for edge in ("begin", "end")
    )
    for mode in ("train", "test", "predict")
}


def flavour_of(callback: Any) -> Flavour:
    """Which Keras a callback was written for; Keras 2 covers tf.keras 2.15 too."""
    for base in type(callback).__mro__:
        root = base.__module__.partition(".")[0]
        if root in ("keras", "tf_keras"):
            module = __import__(root)
            return "keras3" if compat.is_keras3(module) else "keras2"
    return "keras2"


def stock_name(callback: Any) -> str:
    """The name of the Keras callback class that a callback is or derives from."""
    for base in type(callback).__mro__:
        if base.__module__.partition(".")[0] in KERAS and base.__name__ != "Callback":
            return base.__name__
    return ""


def overrides(callback: Any, event: str) -> bool:
    """Whether a callback has an own method for an event.

    Every flavour marks the methods of its base class with `_is_default`, on the
    method, so that one set on the instance counts as an override. Keras does not
    mark the epoch- and loop-level ones everywhere: those count if their class is
    not a Keras base class.
    """
    method = getattr(callback, event, None)
    if not callable(method):
        return False
    if getattr(method, "_is_default", False):
        return False
    return not _inherited(callback, event)


def _inherited(callback: Any, event: str) -> bool:
    """Whether the method found is the empty one of a Keras `Callback` class."""
    if event in getattr(callback, "__dict__", {}):
        return False
    for base in type(callback).__mro__:
        if event in base.__dict__:
            return base.__name__ == "Callback" and base.__module__.split(".")[0] in (
                "keras",
                "tf_keras",
            )
    return False


def wants_batches(callback: Any, mode: str) -> bool:
    """Whether Keras would call the batch methods of a callback in a mode.

    Args:
      callback: of any flavour.
      mode: "train", "test" or "predict".
    """
    own = getattr(callback, f"_implements_{mode}_batch_hooks", None)
    if callable(own):
        return bool(own())
    return any(overrides(callback, event) for event in BATCH_EVENTS[mode])


def needs_epochs(callback: Any) -> bool:
    """Whether a callback has a method that is called by epoch."""
    return overrides(callback, "on_epoch_begin") or overrides(callback, "on_epoch_end")


class Calls:
    """The methods of one event of several callbacks, called in order.

    Calling it on no method at all costs nothing but the call.

    Args:
      callbacks: in the order in which they were given.
      event: name of the method.
    """

    __slots__ = ("_eager", "methods")

    def __init__(self, callbacks: Sequence[Any], event: str) -> None:
        mode = next((m for m, events in BATCH_EVENTS.items() if event in events), None)
        # Keras 2 asks whether any callback wants batches and then calls them all.
        shared = mode is not None and any(wants_batches(c, mode) for c in callbacks)
        self.methods = [
            getattr(c, event)
            for c in callbacks
            if _is_called(c, event)
            or (shared and _opted_out(c, mode) and overrides(c, event))
        ]
        self._eager = compat.private("eager_mode")

    def __bool__(self) -> bool:
        return bool(self.methods)

    def __call__(self, *args: Any) -> None:
        """Calls every method with the same arguments, under eager execution.

        An exception leaves at once, as it does in `Model.fit`.
        """
        if self.methods:
            with self._eager():
                for method in self.methods:
                    method(*args)


def _opted_out(callback: Any, mode: str | None) -> bool:
    """Whether a Keras 2 callback says that it wants no batches in a mode."""
    own = getattr(callback, f"_implements_{mode}_batch_hooks", None)
    return callable(own) and not own()


def _is_called(callback: Any, event: str) -> bool:
    if not callable(getattr(callback, event, None)):
        return False
    for mode, events in BATCH_EVENTS.items():
        if event in events:
            # Keras calls the empty methods of its base class too, which nobody sees.
            alias = event.replace("_train_", "_")
            return wants_batches(callback, mode) and (
                overrides(callback, event) or overrides(callback, alias)
            )
    return overrides(callback, event)
