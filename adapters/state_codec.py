"""Attributes of callbacks as JSON and arrays, and back. Nothing is pickled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

_ARRAY, _TUPLE, _PAIRS = "__array__", "__tuple__", "__pairs__"


class NotStorableError(TypeError):
    """Raised for a value that neither JSON nor an array file can hold."""


def encode(value: Any, arrays: dict[str, Any]) -> Any:
    """A value as JSON, its arrays put aside.

    Args:
      value: None, bool, number, string, numpy value, or lists, tuples and dicts of
        those.
      arrays: takes the arrays, by the key that stands in the JSON.

    Raises:
      NotStorableError: the value, or something in it, is of another kind.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "fiub":
        return value.item()
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiubc":
        key = f"a{len(arrays)}"
        arrays[key] = value
        return {_ARRAY: key}
    if isinstance(value, list):
        return [encode(v, arrays) for v in value]
    if isinstance(value, tuple) and type(value) is tuple:
        return {_TUPLE: [encode(v, arrays) for v in value]}
    if isinstance(value, dict):
        if all(isinstance(k, str) and not k.startswith("__") for k in value):
            return {k: encode(v, arrays) for k, v in value.items()}
        pairs = [[encode(k, arrays), encode(v, arrays)] for k, v in value.items()]
        return {_PAIRS: pairs}
    raise NotStorableError(f"a {type(value).__name__} cannot be stored")


def decode(value: Any, arrays: Mapping[str, Any]) -> Any:
    """What `encode` was given."""
    if isinstance(value, list):
        return [decode(v, arrays) for v in value]
    if isinstance(value, dict):
        if _ARRAY in value:
            return np.array(arrays[value[_ARRAY]])
        if _TUPLE in value:
            return tuple(decode(v, arrays) for v in value[_TUPLE])
        if _PAIRS in value:
            return {decode(k, arrays): decode(v, arrays) for k, v in value[_PAIRS]}
        return {k: decode(v, arrays) for k, v in value.items()}
    return value


# What a stock callback of Keras counts in; everything else in it is configuration
# or belongs to one process (files, writers, clocks).
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


def is_stock(callback: Any) -> bool:
    """Whether a callback is of a class of Keras itself, not of a user's."""
    return type(callback).__module__.partition(".")[0] in ("keras", "tf_keras")


def storable(callback: Any) -> dict[str, tuple[Any, dict[str, Any]]]:
    """The attributes of a callback that can be stored: `{name: (JSON, arrays)}`.

    Of a class of Keras those it counts in, of a user's class every attribute that
    `encode` takes.

    Args:
      callback: of any flavour.
    """
    names: Any = list(getattr(callback, "__dict__", {}))
    if is_stock(callback):
        counted = _STOCK.get(type(callback).__name__, ())
        names = [n for n in counted if hasattr(callback, n)]
    found = {}
    for name in names:
        if name in ("params", "model", "_model"):
            continue
        arrays: dict[str, Any] = {}
        try:
            found[name] = encode(getattr(callback, name), arrays), arrays
        except (NotStorableError, RecursionError):
            continue
    return found


def same(a: tuple[Any, dict[str, Any]], b: tuple[Any, dict[str, Any]]) -> bool:
    """Whether two results of `encode` with their arrays are equal."""
    return (
        repr(a[0]) == repr(b[0])
        and a[1].keys() == b[1].keys()
        and all(np.array_equal(a[1][k], b[1][k]) for k in a[1])
    )
