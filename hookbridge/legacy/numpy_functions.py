"""Functions that NumPy removed in 1.23, 2.0 and 2.4."""

from __future__ import annotations

from typing import Any

import numpy as np


def alen(a: Any) -> int:
    """`numpy.alen`: the length of the first axis.

    Args:
      a: the values.

    Returns:
      The length; 1 for a number.
    """
    return len(np.atleast_1d(a))


def asfarray(a: object, dtype: Any = None) -> Any:
    """`numpy.asfarray`: an array of floats.

    Args:
      a: the values.
      dtype: its type; a type that has no fractions is float64.

    Returns:
      The array.
    """
    if dtype is None or not np.issubdtype(dtype, np.inexact):
        dtype = np.float64
    return np.asarray(a, dtype=dtype)


def asscalar(a: object) -> Any:
    """`numpy.asscalar`: the number in an array of one element.

    Args:
      a: the array.

    Returns:
      A number of Python.
    """
    return np.asarray(a).item()


def in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """`numpy.in1d`: `numpy.isin` of what is laid out flat.

    Args:
      ar1: the values that are looked for.
      ar2: where they are looked for.
      assume_unique: whether each value is there once only, which is faster.
      invert: whether the values that are not found are the true ones.

    Returns:
      An array of one axis: whether each value was found.
    """
    return np.isin(np.ravel(ar1), ar2, assume_unique, invert)


def msort(a: Any) -> Any:
    """`numpy.msort`: an array sorted along its first axis.

    Args:
      a: the array.

    Returns:
      A copy.
    """
    return np.sort(a, axis=0)
