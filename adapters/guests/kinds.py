"""Whether an item is a hook, a callback (of which Keras), or neither."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from hookbridge import errors
from hookbridge.ground import compat
from hookbridge.ground.arguments import shown
from hookbridge.ground.imports.installed import KERAS
from hookbridge.ground.lifecycle.events import HOOK_METHODS
from hookbridge.ground.protocols import Callback

Flavour = Literal["keras2", "keras3"]
# Every Keras flavour calls these on every callback, whether it overrides them or not.
CALLBACK_METHODS = (
    "set_params",
    "set_model",
    "on_train_begin",
    "on_epoch_begin",
    "on_epoch_end",
    "on_train_end",
)


def _has_all(item: object, methods: Iterable[str]) -> bool:
    try:
        return all(callable(getattr(item, name, None)) for name in methods)
    except Exception:  # a `__getattr__` that fails finds no method
        return False


def is_callback(item: object) -> bool:
    """Return whether `item` is a Keras callback instance of any flavour."""
    # A callback of one Keras is not an instance of another Keras's base class. So an
    # object with the methods that every `CallbackList` calls counts too.
    if inspect.isclass(item):
        return False
    bases = tuple(k.callbacks.Callback for k in compat.keras_flavours())
    return isinstance(item, bases) or _has_all(item, CALLBACK_METHODS)


def has_hook_methods(item: object) -> bool:
    """Return whether an object is a `SessionRunHook` or has its five methods."""
    import tensorflow as tf

    return isinstance(item, tf.compat.v1.train.SessionRunHook) or _has_all(
        item, HOOK_METHODS
    )


def is_hook(item: object) -> bool:
    """Return whether `item` is a `SessionRunHook` instance."""
    # As in `MonitoredSession`, an object with the five methods is enough.
    import tensorflow as tf

    if inspect.isclass(item) or not has_hook_methods(item):
        return False
    return isinstance(item, tf.compat.v1.train.SessionRunHook) or not is_callback(item)


def is_callback_list(item: object) -> bool:
    """Return whether `item` is a Keras `CallbackList`: a container, not a callback."""
    return (
        not inspect.isclass(item)
        and type(item).__name__ == "CallbackList"
        and hasattr(item, "callbacks")
    )


def is_of_keras(cls: type) -> bool:
    """Return whether a class is Keras's own, of any flavour."""
    return cls.__module__.partition(".")[0] in KERAS


def keras_bases(item: object) -> Iterator[type]:
    """Yield the classes of Keras that an object's class is or derives from."""
    return filter(is_of_keras, type(item).__mro__)


def keras_behind(item: object) -> Any:
    """Return the Keras module that an object's class is or derives from, or None."""
    packages = (base.__module__.partition(".")[0] for base in keras_bases(item))
    package = next(packages, None)
    return None if package is None else importlib.import_module(package)


def flavour_of(callback: Callback) -> Flavour:
    """Return which Keras a callback was written for."""
    return "keras3" if compat.is_keras3(keras_behind(callback)) else "keras2"


def keras_class_of(callback: Callback) -> str:
    """Return the name of the Keras callback class of a callback, or of its base."""
    names = (base.__name__ for base in keras_bases(callback))
    return next((name for name in names if name != "Callback"), "")


def flatten(items: object) -> list[Any]:
    """Return a guest, a (nested) list of them or a `CallbackList` as a flat list."""
    return [] if items is None else _flatten(items, "", ())


def _flatten(items: Any, place: str, outer: tuple[Any, ...]) -> list[Any]:
    """Return the guests of a nested list; `place` is where an item is, for errors."""
    if is_callback_list(items):
        items = list(items.callbacks)
    elif is_hook(items) or is_callback(items):
        return [items]
    if any(items is outer_list for outer_list in outer):
        raise errors.NotAGuestError(
            f"Received a list that contains itself, at {place}."
        )
    if isinstance(items, (list, tuple)):
        return [
            guest
            for i, item in enumerate(items)
            for guest in _flatten(item, f"{place}[{i}]", (*outer, items))
        ]
    where = f" It is at {place} of the list." if place else ""
    raise errors.NotAGuestError(_complaint(items) + where)


def _complaint(item: object) -> str:
    """Return what is wrong with an item that is not a guest, and how to fix it."""
    wanted = (
        "a `tf.compat.v1.train.SessionRunHook` or a Keras `Callback` (an instance), "
        "or a list of those"
    )
    if inspect.isclass(item):
        return (
            f"Received the class `{item.__name__}`; expected {wanted}. "
            f"Construct it first: `{item.__name__}(...)`."
        )
    if callable(item):
        return (
            f"Received the function `{getattr(item, '__name__', item)}`; expected "
            f"{wanted}. Wrap it: `tf.keras.callbacks.LambdaCallback(on_epoch_end=...)`."
        )
    if item is None:
        return f"Received None; expected {wanted}. Leave it out of the list."
    return f"Received {shown(item)} of type `{type(item).__name__}`; expected {wanted}."


def hooks_only(hooks: object) -> list[Any]:
    """Return the hooks for a session as a list; None counts as no hook."""
    items = [] if hooks is None else hooks
    if not isinstance(items, Iterable):
        raise errors.NotAGuestError(
            f"Received hooks={shown(hooks)}; expected a list of `SessionRunHook`s."
        )
    items = list(items)
    for index, hook in enumerate(items):
        if not is_hook(hook):
            way_out = "Convert it with `hb.as_hooks`." if is_callback(hook) else ""
            complaint = f"{_complaint(hook)} It is at [{index}] of `hooks`. {way_out}"
            raise errors.NotAGuestError(complaint.rstrip())
    return items


def name_of(guest: object) -> str:
    """Return the name of a guest in messages and reports: its class."""
    return type(guest).__name__
