"""Copies of a model's values, in memory that each save uses again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge.adapters.session_graph.saved import SavedArray

# How TensorFlow aligns the memory of its tensors.
_ALIGNMENT = 64
# What takes less time to copy than to give to a thread.
_SMALL_BYTES = 2**18
# What a thread copies at a time. The C library copies parts of this size past the
# caches, in little more than half of the time.
_PART_BYTES = 2**28


class ValueCopies:
    """Copies of the values that a checkpoint has, until the next call of `of`.

    New memory would take several times as long as the copy: the system clears it page
    by page when it is written. So the memory stays, and several threads copy into it.
    """

    def __init__(self) -> None:
        self._copies: dict[SavedArray, tuple[np.ndarray[Any, Any], tf.Tensor]] = {}

    def of(self, values: Mapping[SavedArray, Any]) -> dict[SavedArray, Any]:
        """Return the values now, as tensors, except those that are not NumPy numbers.

        Those, such as strings, stay what they are: TensorFlow copies such a value
        before it updates the variable.
        """
        views = {entry: np.asarray(value) for entry, value in values.items()}
        numbers = {e: view for e, view in views.items() if view.dtype.kind in "fiu"}
        parts: list[tuple[Any, Any]] = []
        for entry, view in numbers.items():
            array = self._array(entry, view)
            if view.nbytes < _SMALL_BYTES:
                np.copyto(array, view)
            else:
                parts += _parts(array, view)
        with ThreadPoolExecutor() as pool:
            for _ in pool.map(lambda part: np.copyto(*part), parts):
                pass  # raises what a thread has met
        return {**values, **{entry: self._copies[entry][1] for entry in numbers}}

    def _array(self, entry: SavedArray, view: Any) -> Any:
        """Return the memory for a value; a tensor shares it."""
        array = self._copies[entry][0] if entry in self._copies else None
        if array is None or (array.shape, array.dtype) != (view.shape, view.dtype):
            array = _aligned(view.shape, view.dtype)
            shares = tf.experimental.dlpack.from_dlpack(array.__dlpack__())
            self._copies[entry] = (array, shares)
        return array


def _aligned(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return new memory, where TensorFlow can use it as that of a tensor."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % _ALIGNMENT
    return memory[begin : begin + size].view(dtype).reshape(shape)


def _parts(to: Any, of: Any) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of parts of two arrays of one shape, for threads to copy."""
    to, of = to.reshape(-1), of.reshape(-1)
    count = max(1, _PART_BYTES // of.itemsize)
    for begin in range(0, of.size, count):
        yield to[begin : begin + count], of[begin : begin + count]
