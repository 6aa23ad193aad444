"""Functions of NumPy that take rows of unequal length, as until 1.24."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# How NumPy says that rows are of unequal length.
UNEQUAL = "inhomogeneous shape"


def array(object: Any, *args: Any, **named: Any) -> Any:
    """`numpy.array`; rows of unequal length become an array of objects.

    Args:
      object: the rows.
      *args: further arguments of `numpy.array`.
      **named: the same, by name; with a `dtype` it is `numpy.array` itself.

    Returns:
      The array.
    """
    return of_unequal_rows(np.array, object, *args, **named)


def asanyarray(a: Any, *args: Any, **named: Any) -> Any:
    """`numpy.asanyarray`, with rows as `array` takes them.

    Args:
      a: the rows.
      *args: further arguments of `numpy.asanyarray`.
      **named: the same, by name.

    Returns:
      The array.
    """
    return of_unequal_rows(np.asanyarray, a, *args, **named)


def asarray(a: Any, *args: Any, **named: Any) -> Any:
    """`numpy.asarray`, with rows as `array` takes them.

    Args:
      a: the rows.
      *args: further arguments of `numpy.asarray`.
      **named: the same, by name.

    Returns:
      The array.
    """
    return of_unequal_rows(np.asarray, a, *args, **named)


def of_unequal_rows(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Call a function of NumPy that makes an array of its first argument.

    Args:
      function: `numpy.array` or one of its kin.
      *args: its arguments.
      **named: its arguments by name.

    Returns:
      The array; of objects if the rows are of unequal length, and no type is given.
    """
    if named.get("copy") is False and np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        named["copy"] = None
    try:
        return function(*args, **named)
    except ValueError as e:
        has_type = (*args[1:2], named.get("dtype"))[0] is not None
        if has_type or UNEQUAL not in str(e):
            raise
    if len(args) > 1:
        return function(args[0], object, *args[2:], **named)
    return function(*args, **(named | {"dtype": object}))
