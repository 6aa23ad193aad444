"""Values of attributes as JSON and arrays, and back.

Nothing is pickled. Arrays are in an `.npz` file and never larger than the file.
"""

from __future__ import annotations

import io
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

_ARRAY, _TUPLE, _PAIRS = "__array__", "__tuple__", "__pairs__"
_DTYPE, _DICT, _FACTORY = "__dtype__", "__dict__", "__factory__"
_LIST, _LONG = "__list__", 1000
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


def encode(value: object, arrays: dict[str, Any], *, nested: bool = False) -> Any:
    """Return a value as JSON; its arrays go into `arrays`.

    Args:
      value: an attribute of a callback.
      arrays: `{key: array}` of any shape, to which those in the value are added.
      nested: whether the value is a part of another one.

    Returns:
      What `json` can write, and `decode` makes the value of.

    Raises:
      NotStorableError: neither JSON nor an array file can hold it.
    """
    # Top-level containers (not `nested`) are refilled in place, so their exact type is
    # not stored.
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.generic) and _is_number(value.dtype):
        return _encode_number(value)
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, np.ndarray) and _is_number(value.dtype):
        return _encode_array(value, arrays)
    if isinstance(value, list):
        return _encode_list(value, arrays)
    if type(value) is tuple:
        return {_TUPLE: [encode(v, arrays, nested=True) for v in value]}
    if isinstance(value, dict):
        return _encode_dict(value, arrays, nested)
    raise NotStorableError(f"a {type(value).__name__} cannot be stored")


def _encode_number(value: Any) -> Any:
    """Return a number of numpy as one of Python; JSON has no complex numbers."""
    if value.dtype.kind == "c":
        raise NotStorableError(f"{type(value).__name__} is not a JSON number")
    return value.item()


def _encode_array(value: Any, arrays: dict[str, Any]) -> dict[str, str]:
    """Return an array of numbers as the key that it gets in `arrays`."""
    key = f"a{len(arrays)}"
    if value.dtype.isbuiltin != _REGISTERED:
        arrays[key] = value
        return {_ARRAY: key}
    # An `.npz` file would keep the bits but not the dtype.
    arrays[key] = value.view(f"u{value.dtype.itemsize}")
    return {_ARRAY: key, _DTYPE: value.dtype.name}


def _encode_list(value: list[Any], arrays: dict[str, Any]) -> Any:
    """Return a list, item by item; a long one of numbers becomes an array."""
    if len(value) >= _LONG and {type(v) for v in value} in ({int}, {float}):
        array = np.asarray(value)
        if array.dtype.kind in "if":
            return {_LIST: encode(array, arrays)}
    return [encode(v, arrays, nested=True) for v in value]


def _encode_dict(
    value: dict[Any, Any], arrays: dict[str, Any], nested: bool
) -> dict[str, Any]:
    """Return a dict; as pairs if JSON would lose its type or the types of its keys."""
    kind = _kind_of(value, nested)
    plain = all(isinstance(k, str) and not k.startswith("__") for k in value)
    if plain and not kind:
        return {k: encode(v, arrays, nested=True) for k, v in value.items()}
    pairs = [
        [encode(k, arrays, nested=True), encode(v, arrays, nested=True)]
        for k, v in value.items()
    ]
    return {**kind, _PAIRS: pairs}


def _is_number(dtype: Any) -> bool:
    # The dtypes of ml_dtypes, such as bfloat16, are not numpy's own.
    return dtype.kind in "fiubc" or dtype.isbuiltin == _REGISTERED


def _kind_of(value: object, nested: bool) -> dict[str, str]:
    """Return the entries that name the type of a dict; none for a plain one."""
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


def decode(value: object, arrays: Mapping[str, Any]) -> Any:
    """Return the value that `encode` was given."""
    if isinstance(value, list):
        return [decode(v, arrays) for v in value]
    if isinstance(value, dict):
        if _ARRAY in value:
            array = np.asarray(arrays[value[_ARRAY]])
            return array.view(_dtype(value[_DTYPE])) if _DTYPE in value else array
        if _LIST in value:
            return decode(value[_LIST], arrays).tolist()
        if _TUPLE in value:
            return tuple(decode(v, arrays) for v in value[_TUPLE])
        if _PAIRS in value:
            return _decode_pairs(value, arrays)
        return {k: decode(v, arrays) for k, v in value.items()}
    return value


def _decode_pairs(value: Mapping[str, Any], arrays: Mapping[str, Any]) -> Any:
    """Return a dict that is stored as pairs, of the type that it had."""
    pairs = {decode(k, arrays): decode(v, arrays) for k, v in value[_PAIRS]}
    if _FACTORY in value:
        return defaultdict(_FACTORIES[value[_FACTORY]], pairs)
    return _DICTS[value[_DICT]](pairs) if _DICT in value else pairs


def _dtype(name: str) -> Any:
    dtype = np.dtype(tf.as_dtype(name).as_numpy_dtype)
    if not _is_number(dtype):
        raise TypeError(f"{name} arrays are not numeric")
    return dtype


def to_bytes(arrays: Mapping[str, Any]) -> bytes:
    """Return an `.npz` file of arrays, not compressed."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def from_bytes(data: bytes) -> dict[str, Any]:
    """Return the arrays of an `.npz` file that `to_bytes` made."""
    # A file from elsewhere may claim false sizes: together, the arrays are never larger
    # than the file.
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        if sum(member.file_size for member in file.zip.infolist()) > len(data):
            raise ValueError("its arrays are larger than their file")
        return dict(file)
