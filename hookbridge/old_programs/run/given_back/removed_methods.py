"""Methods and attributes that classes no longer have, as own files find them."""

from __future__ import annotations

import array
import functools
import pkgutil
import sys
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from hookbridge.old_programs.run.given_back import removed_names
from hookbridge.tf1_names import removed_in_libraries


def _tostring(self: Any, *order: Any, **named: Any) -> bytes:
    data: bytes = self.tobytes(*order, **named)
    return data


def _itemset(self: Any, *args: Any) -> None:
    """`array.itemset(value)`, `(index, value)` or `(row, column, value)`."""
    *index, value = args
    plain = self.view(np.ndarray)  # whatever a class below, or a mask, makes of it
    if not index and self.size == 1:
        plain.fill(value)
    elif not index:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    elif len(index) == 1 and not isinstance(index[0], tuple):
        plain.flat[index[0]] = value
    else:
        plain[index[0] if len(index) == 1 else tuple(index)] = value


def _ptp(
    self: Any, axis: object = None, out: Any = None, keepdims: bool = False
) -> Any:
    """Not `numpy.ptp`: it calls the method of a class below, which may call this."""
    highest: Any = np.maximum
    lowest: Any = np.minimum
    highest = highest.reduce(self, axis, None, out, keepdims)
    lowest = lowest.reduce(self, axis, None, None, keepdims)
    return np.subtract(highest, lowest, out)


def _newbyteorder(self: Any, new_order: str = "S") -> Any:
    return self.view(self.dtype.newbyteorder(new_order))


def _getiterator(self: Element, tag: str | None = None) -> list[Element]:
    return list(self.iter(tag))


@property  # type: ignore[misc]
def _layers(self: Any) -> Any:
    """The list of the layers of a model, which a program may change."""
    return self._self_tracked_trackables


# Method of a type -> what does the same; a property for an attribute.
OURS: dict[str, Any] = {
    "array.array.fromstring": array.array.frombytes,
    "array.array.tostring": array.array.tobytes,
    "keras.models.Model._layers": _layers,
    "numpy.generic.newbyteorder": _newbyteorder,
    "numpy.generic.ptp": _ptp,
    "numpy.generic.tostring": _tostring,
    "numpy.ndarray.itemset": _itemset,
    "numpy.ndarray.newbyteorder": _newbyteorder,
    "numpy.ndarray.ptp": _ptp,
    "numpy.ndarray.tostring": _tostring,
    "xml.etree.ElementTree.Element.getchildren": list,
    "xml.etree.ElementTree.Element.getiterator": _getiterator,
}
_SUPER: Any = super  # the types do not say that it has `__self__`


@functools.cache
def names() -> frozenset[str]:
    """Return the last parts of the methods that `method` knows."""
    return frozenset(_by_name())


@functools.cache
def _by_name() -> dict[str, list[str]]:
    """Return the classes that no longer have a method, by its name."""
    rows = removed_in_libraries.removed_names().items()
    known = [
        n for n, row in rows if row.is_method and (row.replacement or row.is_given_back)
    ]
    classes: dict[str, list[str]] = {}
    for full in {*known, *OURS}:
        kind, _, name = full.rpartition(".")
        classes.setdefault(name, []).append(kind)
    return classes


def method(owner: object, name: str) -> Any:
    """`owner.name`, or what did the same under a name that its type no longer has.

    Raises:
      AttributeError: it never had such a name.
    """
    try:
        return getattr(owner, name)
    except AttributeError:
        if isinstance(owner, _SUPER):
            owner = owner.__self__
        kind: Any = owner if isinstance(owner, type) else type(owner)
        if replacement := _ours(kind, name):
            is_class = kind is owner
            if isinstance(replacement, property) and not is_class:
                return replacement.__get__(owner)
            return replacement if is_class else functools.partial(replacement, owner)
        raise


def _ours(kind: type, name: str) -> Any:
    """Return what does the same as a removed method of a type or of its bases."""
    for above in _by_name().get(name, ()):
        owner = _imported(removed_names.name_today(above))
        if isinstance(owner, type) and issubclass(kind, owner):
            full = f"{above}.{name}"
            return OURS.get(full) or removed_names.method(full)
    return None


def _imported(name: str) -> Any:
    """Return a class, if its library is imported; an object is of no other one."""
    if name.partition(".")[0] not in sys.modules:
        return None
    try:
        return pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return None
