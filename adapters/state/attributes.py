"""Which attributes of a callback are its state, and how they are set again."""

from __future__ import annotations

import contextlib
import copy
import dis
import functools
import inspect
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from hookbridge.adapters.guests import keras_rows, kinds
from hookbridge.adapters.state.codec import NotStorableError, encode
from hookbridge.ground.protocols import Callback

# The state attributes of Keras's callbacks that are not numbers.
_KINDS: dict[str, type] = {"best_weights": list, "history": dict, "epoch": list}
_MAY_BE_NONE = ("best", "best_weights")
_NUMBERS = (int, float, np.number)
_CONTAINERS = (list, tuple, dict, np.ndarray)
# Attributes that the loop or the user sets, not the callback.
NEVER = frozenset({"model", "_model", "params", "validation_data", "state_key"})


def is_stock(callback: Callback) -> bool:
    """Return whether a callback's class is Keras's own, and not derived from it."""
    return kinds.is_of_keras(type(callback))


def state_attributes_of(callback: Callback) -> frozenset[str]:
    """Return the attributes that are state by the Keras classes of a callback."""
    return frozenset(
        name
        for base in kinds.keras_bases(callback)
        for name in keras_rows.row(base.__name__).state_attributes
    )


def storable(callback: Callback) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return the attributes of a callback that are stored: `{name: (JSON, arrays)}`."""
    # For a Keras class its row says which. For a user's class these are all that
    # are state (see `is_state`) and that `encode` takes.
    state = {}
    for name, value in list(getattr(callback, "__dict__", {}).items()):
        if is_state(callback, name, value):
            with contextlib.suppress(NotStorableError, RecursionError):
                state[name] = encoded(value)
    return state


def encoded(value: object) -> tuple[Any, dict[str, Any]]:
    """Return a value as `encode` gives it, with its arrays."""
    arrays: dict[str, Any] = {}
    return encode(value, arrays), arrays


def is_state(callback: Callback, name: str, value: object) -> bool:
    """Return whether an attribute of a callback is state and may be set to `value`.

    A number or container is, if `value` is of the same kind. A string, a value of
    another kind or a new attribute is state only if a method other than `__init__`
    assigns it: paths, commands and other configuration are not.
    """
    if is_stock(callback):
        return name in keras_rows.row(type(callback).__name__).state_attributes
    kind: Any = type(callback)
    if name in NEVER or name in _configured_by_keras(kind) or name.startswith("__"):
        return False
    if _is_method_or_property(kind, name):
        return False
    now = getattr(callback, "__dict__", {}).get(name)
    if isinstance(now, _NUMBERS) and isinstance(value, _NUMBERS):
        return True
    if any(isinstance(now, c) and isinstance(value, c) for c in _CONTAINERS):
        return True
    return name in assigned(kind)


def _is_method_or_property(kind: type, name: str) -> bool:
    """Return whether an attribute is a method or a property of a class."""
    of_class = inspect.getattr_static(kind, name, None)
    return (
        callable(of_class)
        or isinstance(of_class, (classmethod, staticmethod))
        or inspect.isdatadescriptor(of_class)
    )


@functools.lru_cache(maxsize=256)
def assigned(kind: type) -> frozenset[str]:
    """Return the attributes that methods of a class other than `__init__` assign."""
    codes = []
    for base in kind.__mro__:
        for name, member in vars(base).items():
            function = inspect.unwrap(getattr(member, "__func__", member))
            code = getattr(function, "__code__", None)
            if name != "__init__" and isinstance(code, types.CodeType):
                codes.append(code)
    names = set()
    while codes:
        code = codes.pop()
        codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        names |= {
            str(step.argval)
            for step in dis.get_instructions(code)
            if step.opname == "STORE_ATTR"
        }
    return frozenset(names)


@functools.lru_cache(maxsize=256)
def _configured_by_keras(kind: type) -> frozenset[str]:
    """Return arguments of a Keras class that it changes later, by itself each time."""
    # `EarlyStopping` of Keras 3 changes the sign of `min_delta`.
    of_keras = next((base for base in kind.__mro__ if kinds.is_of_keras(base)), None)
    return parameters(of_keras) & assigned(of_keras) if of_keras else frozenset()


@functools.lru_cache(maxsize=256)
def parameters(kind: type) -> frozenset[str]:
    """Return the parameters that the constructors of a class and its bases take."""
    names: set[str] = set()
    for base in kind.__mro__:
        init = vars(base).get("__init__")
        if inspect.isfunction(init):
            names |= inspect.signature(init).parameters.keys()
    return frozenset(names - {"self", "args", "kwargs"})


def are_equal(a: tuple[Any, dict[str, Any]], b: tuple[Any, dict[str, Any]]) -> bool:
    """Return whether two results of `encode` with their arrays are equal."""
    return (
        repr(a[0]) == repr(b[0])
        and a[1].keys() == b[1].keys()
        and all(np.array_equal(a[1][k], b[1][k]) for k in a[1])
    )


def find_direction(callback: Callback) -> None:
    """Let a monitor of Keras before 3.7 find its direction before it gets its `best`.

    It would do so at its first epoch otherwise, and start its `best` over.
    """
    if not hasattr(callback, "best") and hasattr(callback, "_set_monitor_op"):
        callback._set_monitor_op()


def set_attribute(
    callback: Callback, name: str, value: object, *, is_as_written: bool = False
) -> None:
    """Set an attribute to what `decode` returned.

    Args:
      callback: the callback.
      name: the attribute.
      value: its value.
      is_as_written: whether the value is known to be the one that a callback had.
        Otherwise one of another kind than the attribute has now is not set.

    Raises:
      TypeError: the attribute is not state, or the value is not of its kind.
    """
    # An existing list or dict is refilled, not replaced: other objects may hold it, and
    # its type may be a subclass.
    if not is_state(callback, name, value):
        raise TypeError("it is configuration or a method, not state")
    now = getattr(callback, name, None)
    if is_stock(callback):
        fits = _is_of_kind(name, value, may_be_none=is_as_written)
    else:
        fits = is_as_written or _is_alike(now, value)
    if not fits:
        raise TypeError(f"{value!r} cannot take the place of {now!r}")
    like = type(value) in (dict, list, type(now))
    if isinstance(now, dict) and isinstance(value, dict) and like:
        now.clear()
        now.update(value)
    elif isinstance(now, list) and isinstance(value, list) and like:
        now[:] = value
    else:
        setattr(callback, name, value)


def restorer_of(callbacks: Sequence[Callback]) -> Callable[..., None]:
    """Return a function that gives callbacks the state again that they have now.

    What they have counted since is forgotten, and attributes that are new are removed;
    `kept` names some that are not, by the place of the callback.
    """
    states = [
        (callback, {n: copy.deepcopy(getattr(callback, n)) for n in storable(callback)})
        for callback in callbacks
    ]

    def restore(kept: Mapping[int, Collection[str]] = {}) -> None:
        for index, (callback, state) in enumerate(states):
            new = storable(callback).keys() - state.keys() - set(kept.get(index, ()))
            for name in new:
                delattr(callback, name)
            if "best" in new:
                find_direction(callback)
            for name, value in state.items():
                set_attribute(callback, name, copy.deepcopy(value), is_as_written=True)

    return restore


def _is_of_kind(name: str, value: object, *, may_be_none: bool) -> bool:
    """Return whether a value is of the kind that a state attribute of Keras has."""
    if value is None:
        return may_be_none or name in _MAY_BE_NONE
    kind: Any = _KINDS.get(name, _NUMBERS)
    return isinstance(value, kind)


def _is_alike(now: object, value: object) -> bool:
    """Return whether a value may be a later one of an attribute that is `now`."""
    if isinstance(now, np.ndarray) and isinstance(value, np.ndarray):
        return (now.dtype.kind in "US") == (value.dtype.kind in "US")
    kinds_of_values: tuple[Any, ...] = (bool, _NUMBERS, str, *_CONTAINERS)
    # Anything may follow None, or an object of another kind.
    kind = next((kind for kind in kinds_of_values if isinstance(now, kind)), object)
    is_flag = kind is _NUMBERS and isinstance(value, bool)
    return isinstance(value, kind) and not is_flag
