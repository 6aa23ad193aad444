"""One number, in whatever a user's function may return it."""

from __future__ import annotations

import numpy as np


def as_number(value: object) -> float | None:
    """Return a number, or the one element of an array; None for what is none."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, NotImplementedError):
        return None  # rows of several lengths, a tensor of a graph
    if array.size != 1 or array.dtype.kind not in "fiub":
        return None
    return float(array.reshape(()))
