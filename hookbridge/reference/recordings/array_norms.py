"""Norms of arrays, and the types in which arrays are compared and kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def wide(value: object) -> Any:
    """Return an array of numbers as float64, or as complex128 if it is complex."""
    array = np.asarray(value)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def norm(value: object) -> float:
    """Return the square root of the sum of squares, in float64."""
    return float(np.linalg.norm(wide(value).ravel()))


def plain(value: object) -> Any:
    """Return an array of a type that NumPy itself has; strings become bytes."""
    array = np.asarray(value)
    if array.dtype == object:
        return array.astype(np.bytes_)
    # NumPy has no bfloat16 or float8 of its own, and would write them as bytes.
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def whole_gradient(parts: Sequence[Any], shape: Any) -> Any:
    """Return a gradient as one array; one of rows is added up.

    Args:
      parts: the array, or the rows and their indices.
      shape: the shape of its variable; None leaves rows as they are.
    """
    if len(parts) == 1 or shape is None:
        return parts[0]
    values, indices = parts
    whole = np.zeros(shape, values.dtype)
    np.add.at(whole, indices, values)
    return whole


def norm_of_change(after: object, before: object) -> float:
    """Return the norm of what an array has changed by."""
    with np.errstate(invalid="ignore"):  # infinite less infinite is NaN
        return norm(wide(after) - wide(before))
