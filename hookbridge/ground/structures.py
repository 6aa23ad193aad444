"""Keys and copies of structures of fetches, and what is remembered by such keys."""

from __future__ import annotations

import collections
import copy
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

# What is made of several dense tensors, and its specifications.
COMPOSITES = (
    tf.RaggedTensor,
    tf.RaggedTensorSpec,
    tf.SparseTensor,
    tf.SparseTensorSpec,
)

# Elements of a graph. They live as long as the graph, so their ids identify them.
_ELEMENTS = (tf.Tensor, tf.Operation, tf.Variable, tf.SparseTensor, tf.IndexedSlices)
_MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict)

# Classes of elements met so far; `isinstance` for each fetch would cost too much.
_element_types: set[type] = set()

# A loop has only a few sets of fetches. The limit is for hooks that fetch something
# else in every run: what is remembered of them must not fill the memory.
MOST = 64


class UnknownStructureError(TypeError):
    """Raised for fetches that cannot be cached: their identity is not stable."""


def structure_key(fetches: Any) -> Any:
    """Return a hashable key: equal for equal structures of the same elements.

    Elements, and mapping keys other than strings, are represented by their ids: a hook
    may be a key, and may define `__eq__`. The result is valid while those objects live.
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
            # The commonest fetches of hooks are done here, without another call.
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


def flat_feeds(feed_dict: Mapping[Any, Any] | None) -> Iterator[tuple[Any, Any]]:
    """Yield what a `feed_dict` feeds, as `Session.run` reads it.

    A key may be a structure of tensors, such as the state of a recurrent network. Its
    value then has as many parts.

    Args:
      feed_dict: the `feed_dict` of a run; None feeds nothing.

    Raises:
      ValueError: a structure and its value have different numbers of parts.
    """
    for key, value in (feed_dict or {}).items():
        if tf.nest.is_nested(key):
            parts = tf.nest.flatten(key), tf.nest.flatten(value)
            yield from zip(*parts, strict=True)
        else:
            yield key, value


def copy_structure(fetches: Any) -> Any:
    """Return the same elements in new containers."""
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


def _is_namedtuple(fetches: object) -> bool:
    return isinstance(fetches, tuple) and hasattr(fetches, "_fields")


def is_empty(fetches: Any) -> bool:
    """Return whether a structure has no fetch in it."""
    if type(fetches) in _MAPPINGS:
        return all(map(is_empty, fetches.values()))
    return isinstance(fetches, (list, tuple)) and all(map(is_empty, fetches))


class RecentlyUsed:
    """What is remembered by keys: at least the `MOST` used last, at most twice as many.

    Threads may share it: at worst an entry is not found and is made again.
    """

    def __init__(self) -> None:
        # Entries are not moved in each use, which would cost time in each step: those
        # of `_old` that are used come to `_new`; when it is full, it becomes `_old`.
        self._new: dict[Any, tuple[Any, Any]] = {}
        self._old: dict[Any, tuple[Any, Any]] = {}

    def get(self, key: Any) -> Any:
        """Return the value of a key, or None."""
        entry = self._new.get(key)
        if entry is None:
            entry = self._old.get(key)
            if entry is None:
                return None
            self.add(key, *entry)
        return entry[0]

    def add(self, key: object, value: object, keep: object = None) -> None:
        """Remember a value; `keep` are objects whose ids are in the key."""
        if len(self._new) >= MOST and key not in self._new:
            self._old, self._new = self._new, {}
        self._new[key] = value, keep


def dense_parts(name: str, value: object) -> Iterator[tuple[str, Any]]:
    """Yield `(name, tensor)` of each dense tensor of a sparse or ragged one.

    With several ragged axes the splits of the outermost one come first.

    Args:
      name: the name before the slash of each part's name.
      value: the tensor, or its spec, whose parts are specs too.
    """
    parts = tf.nest.flatten(value, expand_composites=True)
    names = ["indices", "values", "shape"]
    if isinstance(value, (tf.RaggedTensor, tf.RaggedTensorSpec)):
        more = [f"row_splits_{number}" for number in range(1, len(parts) - 1)]
        names = ["values", "row_splits", *more]
    for part, tensor in zip(names, parts, strict=False):
        yield f"{name}/{part}", tensor
