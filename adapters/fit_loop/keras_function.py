"""Keras's step functions: the `tf.function` in them, and calls past its dispatch."""

from __future__ import annotations

import inspect
import weakref
from typing import Any

import tensorflow as tf

from hookbridge import compat

_ITERATORS = (tf.data.Iterator, tf.distribute.DistributedIterator)


class SameIterator:
    """A `tf.function` of an iterator, with one look-up of its trace per iterator.

    `tf.function` looks it up at each call, which takes as long as a small step. The
    same iterator object always has the same trace.
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        self._iterator: Any = lambda: None
        self._concrete: Any = None

    def knows(self, *args: Any) -> bool:
        """Whether a call with `args` is sure not to trace."""
        return len(args) == 1 and self._iterator() is args[0]

    def __call__(self, *args: Any) -> Any:
        iterator = args[0] if len(args) == 1 else None
        if iterator is None or self._iterator() is not iterator:
            if not isinstance(iterator, _ITERATORS):
                return self._function(*args)
            self._concrete = self._function.get_concrete_function(iterator)
            self._iterator = weakref.ref(iterator)
        return self._concrete(iterator)


def traceable(function: Any) -> Any:
    """The `tf.function` inside what Keras made, or None."""
    # Keras 2 makes a `tf.function`. Keras 3 makes a Python function around a
    # `tf.function`, which returns an optional. With one step per execution the optional
    # is never empty.
    if hasattr(function, "get_concrete_function"):
        return function
    if inspect.isfunction(function):
        names = compat.closure_of("keras3_step", function) or {}
        inner = names.get("multi_step_on_iterator")
        return inner if hasattr(inner, "get_concrete_function") else None
    return None
