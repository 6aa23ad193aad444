"""Structures of fetches as keys: equal for equal structures of the same elements."""

from __future__ import annotations

import collections
import copy
from typing import Any

import tensorflow as tf

# What a fetch can be and cannot change: with another id it is another fetch.
_ELEMENTS = (tf.Tensor, tf.Operation, tf.Variable, tf.SparseTensor, tf.IndexedSlices)
_MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict)

# Filled as types are met: there are many classes of tensors and variables.
_element_types: set[type] = set()


class UnknownStructureError(TypeError):
    """Raised for fetches of which an equal key might mean something else later."""


def structure_key(fetches: Any) -> Any:
    """A hashable key of a structure of fetches.

    It is valid for as long as the elements and the keys of its mappings live: they
    are known by their ids, since hooks, which are keys too, may define `__eq__`.

    Raises:
      UnknownStructureError: it has parts that are no elements of a graph, names or
        containers of Python's own, for example an `attrs` class.
    """
    kind = type(fetches)
    if kind in _element_types:
        return id(fetches)
    if kind is str:
        return fetches
    if kind in _MAPPINGS:
        key: list[Any] = [kind]
        for name, fetch in fetches.items():
            key.append(name if type(name) is str else id(name))
            kind = type(fetch)
            # The commonest fetches of hooks, without another call.
            if kind is str:
                key.append(fetch)
            elif kind in _element_types:
                key.append(id(fetch))
            else:
                key.append(structure_key(fetch))
        return tuple(key)
    if kind is list or kind is tuple or _is_namedtuple(fetches):
        return (kind, *map(structure_key, fetches))
    if isinstance(fetches, _ELEMENTS):
        _element_types.add(kind)
        return id(fetches)
    raise UnknownStructureError(f"{kind} in fetches")


def copy_structure(fetches: Any) -> Any:
    """The same structure in containers of its own, with the same elements."""
    kind = type(fetches)
    if kind in _MAPPINGS:
        copied = copy.copy(fetches)
        for name, fetch in fetches.items():
            copied[name] = copy_structure(fetch)
        return copied
    if kind is list or kind is tuple:
        return kind(map(copy_structure, fetches))
    if _is_namedtuple(fetches):
        return kind(*map(copy_structure, fetches))
    return fetches


def _is_namedtuple(fetches: Any) -> bool:
    return isinstance(fetches, tuple) and hasattr(fetches, "_fields")


def is_empty(fetches: Any) -> bool:
    """Whether there is nothing to run in a structure."""
    if type(fetches) in _MAPPINGS:
        return all(map(is_empty, fetches.values()))
    return isinstance(fetches, (list, tuple)) and all(map(is_empty, fetches))
