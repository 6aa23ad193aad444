"""Attributes of callbacks as JSON and arrays, and back. Nothing is pickled."""

from __future__ import annotations

import dis
import functools
import inspect
import types
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

_ARRAY, _TUPLE, _PAIRS = "__array__", "__tuple__", "__pairs__"
_DTYPE, _DICT, _FACTORY = "__dtype__", "__dict__", "__factory__"
_DICTS: dict[str, Any] = {
    kind.__name__: kind for kind in (Counter, OrderedDict, defaultdict)
}
_FACTORIES: dict[str, Any] = {
    kind.__name__: kind for kind in (int, float, str, list, dict)
}
_FACTORIES[""] = None
_REGISTERED = 2  # `dtype.isbuiltin` of a dtype that is not numpy's own


class NotStorableError(TypeError):
    """Raised for a value that neither JSON nor an array file can hold."""


def encode(value: Any, arrays: dict[str, Any], *, nested: bool = False) -> Any:
    """A value as JSON, its arrays put aside.

    Args:
      value: None, bool, number, string, numpy value, or lists, tuples and dicts of
        those.
      arrays: takes the arrays, by the key that stands in the JSON.
      nested: whether it is part of another value. Top-level containers are refilled
        in place, so their exact type is not stored.

    Raises:
      NotStorableError: the value, or something in it, is of another kind.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.generic) and _is_number(value.dtype):
        return value.item()
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, np.ndarray) and _is_number(value.dtype):
        key = f"a{len(arrays)}"
        if value.dtype.isbuiltin != _REGISTERED:
            arrays[key] = value
            return {_ARRAY: key}
        # An array file would keep the bits and forget what they are.
        arrays[key] = value.view(f"u{value.dtype.itemsize}")
        return {_ARRAY: key, _DTYPE: value.dtype.name}
    if isinstance(value, list):
        return [encode(v, arrays, nested=True) for v in value]
    if isinstance(value, tuple) and type(value) is tuple:
        return {_TUPLE: [encode(v, arrays, nested=True) for v in value]}
    if isinstance(value, dict):
        kind = _kind_of(value, nested)
        plain = all(isinstance(k, str) and not k.startswith("__") for k in value)
        if plain and not kind:
            return {k: encode(v, arrays, nested=True) for k, v in value.items()}
        pairs = [
            [encode(k, arrays, nested=True), encode(v, arrays, nested=True)]
            for k, v in value.items()
        ]
        return {**kind, _PAIRS: pairs}
    raise NotStorableError(f"a {type(value).__name__} cannot be stored")


def _is_number(dtype: Any) -> bool:
    # Those of ml_dtypes, such as bfloat16, are registered ones.
    return dtype.kind in "fiubc" or dtype.isbuiltin == _REGISTERED


def _kind_of(value: Any, nested: bool) -> dict[str, str]:
    """The entries that name the type of a dict; none for a plain one."""
    kind = type(value).__name__
    if type(value) is not _DICTS.get(kind):
        return {}
    if type(value) is not defaultdict:
        return {_DICT: kind}
    factory = getattr(value.default_factory, "__name__", "")
    if value.default_factory is _FACTORIES.get(factory):
        return {_DICT: kind, _FACTORY: factory}
    if nested:
        raise NotStorableError(f"the default_factory of {kind} cannot be stored")
    return {}


def array_keys(value: Any) -> list[str]:
    """The keys of the arrays that a result of `encode` refers to."""
    if isinstance(value, list):
        return [key for v in value for key in array_keys(v)]
    if not isinstance(value, dict):
        return []
    if _ARRAY in value:
        return [str(value[_ARRAY])]
    return [key for v in value.values() for key in array_keys(v)]


def decode(value: Any, arrays: Mapping[str, Any]) -> Any:
    """What `encode` was given."""
    if isinstance(value, list):
        return [decode(v, arrays) for v in value]
    if isinstance(value, dict):
        if _ARRAY in value:
            array = np.array(arrays[value[_ARRAY]])
            return array.view(_dtype(value[_DTYPE])) if _DTYPE in value else array
        if _TUPLE in value:
            return tuple(decode(v, arrays) for v in value[_TUPLE])
        if _PAIRS in value:
            pairs = {decode(k, arrays): decode(v, arrays) for k, v in value[_PAIRS]}
            if _FACTORY in value:
                return defaultdict(_FACTORIES[value[_FACTORY]], pairs)
            return _DICTS[value[_DICT]](pairs) if _DICT in value else pairs
        return {k: decode(v, arrays) for k, v in value.items()}
    return value


def _dtype(name: str) -> Any:
    dtype = np.dtype(tf.as_dtype(name).as_numpy_dtype)
    if not _is_number(dtype):
        raise TypeError(f"an array of {name} is none of numbers")
    return dtype


# The counters of Keras's own callbacks. All their other attributes are configuration
# or belong to one process (files, writers, clocks).
_STOCK: dict[str, tuple[str, ...]] = {
    "EarlyStopping": ("wait", "best", "best_epoch", "stopped_epoch", "best_weights"),
    "ReduceLROnPlateau": ("best", "wait", "cooldown_counter"),
    "ModelCheckpoint": (
        "best",
        "epochs_since_last_save",
        "_batches_seen_since_last_saving",
        "_last_batch_seen",
    ),
    "History": ("history", "epoch"),
    "TensorBoard": ("_global_train_batch", "_global_test_batch"),
}

# The counters that are not numbers.
_KINDS: dict[str, type] = {"best_weights": list, "history": dict, "epoch": list}
_NUMBERS = (int, float, np.number)


def is_stock(callback: Any) -> bool:
    """Whether a callback is of a class of Keras itself, not of a user's."""
    return type(callback).__module__.partition(".")[0] in ("keras", "tf_keras")


def counters_of(callback: Any) -> frozenset[str]:
    """What the Keras class that a callback is or derives from counts in."""
    return frozenset(
        name
        for base in type(callback).__mro__
        if base.__module__.partition(".")[0] in ("keras", "tf_keras")
        for name in _STOCK.get(base.__name__, ())
    )


def storable(callback: Any) -> dict[str, tuple[Any, dict[str, Any]]]:
    """The attributes of a callback that are stored: `{name: (JSON, arrays)}`.

    Those of a Keras class are the ones it counts in; those of a user's class are all
    that `encode` takes and that are state, see `is_state`.

    Args:
      callback: of any flavour.
    """
    found = {}
    for name, value in list(getattr(callback, "__dict__", {}).items()):
        if not is_state(callback, name, value):
            continue
        arrays: dict[str, Any] = {}
        try:
            found[name] = encode(value, arrays), arrays
        except (NotStorableError, RecursionError):
            continue
    return found


_CONTAINERS = (list, tuple, dict, np.ndarray)
# What the loop sets, not the callback.
_NEVER = frozenset({"model", "_model", "params", "validation_data"})


def is_state(callback: Any, name: str, value: Any) -> bool:
    """Whether an attribute of a callback is state and may have a value.

    A text, a value of another kind than the present one, and an attribute that is not
    there are state only where a method other than `__init__` assigns that attribute:
    paths, commands and other configuration are not.

    Args:
      callback: of any flavour.
      name: of the attribute.
      value: the present one, or one that was stored.
    """
    if is_stock(callback):
        return name in _STOCK.get(type(callback).__name__, ())
    of_class = inspect.getattr_static(type(callback), name, None)
    if (
        name in _NEVER
        or name.startswith("__")
        or callable(of_class)
        or isinstance(of_class, (classmethod, staticmethod))
        or inspect.isdatadescriptor(of_class)
    ):
        return False
    now = getattr(callback, "__dict__", {}).get(name)
    if isinstance(now, _NUMBERS) and isinstance(value, _NUMBERS):
        return True
    for kind in _CONTAINERS:
        if isinstance(now, kind) and isinstance(value, kind):
            return True
    kind_of_callback: Any = type(callback)
    return name in _assigned(kind_of_callback)


@functools.lru_cache(maxsize=256)
def _assigned(kind: Any) -> frozenset[str]:
    """The attributes that methods of a class other than `__init__` assign."""
    codes = []
    for base in kind.__mro__:
        for name, member in vars(base).items():
            function = inspect.unwrap(getattr(member, "__func__", member))
            code = getattr(function, "__code__", None)
            if name != "__init__" and isinstance(code, types.CodeType):
                codes.append(code)
    found = set()
    while codes:
        code = codes.pop()
        codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        found |= {
            str(step.argval)
            for step in dis.get_instructions(code)
            if step.opname == "STORE_ATTR"
        }
    return frozenset(found)


def same(a: tuple[Any, dict[str, Any]], b: tuple[Any, dict[str, Any]]) -> bool:
    """Whether two results of `encode` with their arrays are equal."""
    return (
        repr(a[0]) == repr(b[0])
        and a[1].keys() == b[1].keys()
        and all(np.array_equal(a[1][k], b[1][k]) for k in a[1])
    )


def put(callback: Any, name: str, value: Any) -> None:
    """Sets an attribute to what `decode` returned.

    A list or dict that is there is refilled, not replaced: other objects may hold it,
    and it may have a type of its own.

    Raises:
      TypeError: the attribute is no state, or the value is not of its kind.
    """
    if not is_state(callback, name, value):
        raise TypeError("it is configuration or a method, not state")
    now = getattr(callback, name, None)
    if is_stock(callback):
        kind: Any = _KINDS.get(name, _NUMBERS)
        fits = value is None or isinstance(value, kind)
    else:
        number = isinstance(now, _NUMBERS) and not isinstance(now, bool)
        fits = not (number and isinstance(value, (str, list, tuple, dict)))
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
