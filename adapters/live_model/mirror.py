"""An eager variable in the place of one variable of a graph."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge.adapters.live_model import watched
from hookbridge.ground import compat
from hookbridge.ground.protocols import Variable


def eager_variable(
    value: object, name: str, dtype: object = None, shape: object = None
) -> Any:
    """Return a new eager variable, whatever graph is the default one.

    Args:
      value: its initial value, or a function that returns it.
      name: its name, which is its `path` for Keras 3.
      dtype: its type; None for that of the value.
      shape: its shape, which may be partly unknown; None for that of the value.
    """
    options = {"name": name, "dtype": dtype, "shape": shape, "trainable": False}
    with compat.private("eager_mode")(), tf.device("/cpu:0"):
        variable = tf.Variable(value, **options)
    # Keras 3 callbacks name a variable by its path.
    variable.path = name
    return variable


def blank_shape(variable: Variable) -> list[int]:
    """Return the shape of a variable; 0 for a dimension that is not known."""
    shape = variable.shape
    return [0] if shape.rank is None else [d or 0 for d in shape.as_list()]


class Mirror(watched.UseListener):
    """An eager variable and the variable of a graph whose value it has.

    The memory of its value tells whether somebody has assigned to it: this object holds
    the value that it has set, and TensorFlow never changes a value in place while
    somebody else holds it. Its `owner`, the `Mirrors`, is asked as a `UseListener` is.
    """

    def __init__(self, variable: Variable, eager: Any, owner: Any) -> None:
        self.variable = variable
        self.eager = eager
        self.stamp = -1  # the owner's note of how old the value is
        self._value: Any = None
        if not hasattr(eager, "path"):
            eager.path = variable.op.name
        self._owner = owner
        self._inner = watched.inner(eager)
        self.is_watched: bool = watched.watch(self._inner, self)
        self.is_empty: bool = False  # an empty value takes no memory
        if self.is_watched:
            # Nobody sees the empty value: each use fills the variable first.
            self._put(tf.zeros([0], self._inner.dtype))
            self.is_empty = True

    def about_to_use(self) -> None:
        """Tell the owner that the value is about to be read or assigned."""
        self._owner.about_to_use(self)

    def give_away(self) -> Any:
        """Return the array that Keras gets while it saves, or None."""
        return self._owner.give_away(self)

    @property
    def bytes(self) -> int:
        """How much memory its value takes."""
        size = math.prod(blank_shape(self.variable))
        return size * int(self.variable.dtype.base_dtype.size)

    def set(self, value: object) -> None:
        """Set the session's value; call it in eager mode."""
        self._value = tf.constant(value, self._inner.dtype)
        if self.is_watched:
            self._put(self._value)
            self.is_empty = False
        else:
            self.eager.assign(self._value)

    def clear(self) -> None:
        """Set zeros; call it in eager mode."""
        self.set(np.zeros(blank_shape(self.variable), self._inner.dtype.as_numpy_dtype))

    def assigned(self) -> Any:
        """Return the value assigned since the last `set` or `assigned`, or None."""
        # Call it in eager mode.
        if not self.is_watched:
            present = self.eager.read_value()
        else:
            handle = compat.variable_handle(self._inner)
            present = tf.raw_ops.ReadVariableOp(
                resource=handle, dtype=self._inner.dtype
            )
        before, self._value = self._value, present
        now, old = _memory(present), _memory(before)
        if now is None or old is None:
            now, old = present.numpy(), before.numpy()
        elif np.may_share_memory(now, old):
            return None
        # New memory may hold the same value: a sparse read moves a value too.
        if np.array_equal(now, old, equal_nan=now.dtype.kind in "fc"):
            return None
        return now

    def _put(self, value: object) -> None:
        tf.raw_ops.AssignVariableOp(
            resource=compat.variable_handle(self._inner), value=value
        )


def _memory(tensor: Any) -> Any:
    """Return the value of an eager tensor as an array over the same memory, or None."""
    try:
        return np.asarray(memoryview(tensor))
    except (TypeError, ValueError):
        return None  # NumPy has no such dtype, or the value is on another device
