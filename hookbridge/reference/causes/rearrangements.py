"""Whether one array has the numbers of another in another order, or a block shifted."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

# Gates of LSTM and GRU cells, and of both together with a projection.
_BLOCKS = (2, 3, 4)


class Rearranged(NamedTuple):
    """One way in which an array may have become another.

    Attributes:
      text: what happened to it.
      value: what the array becomes by it.
    """

    text: str
    value: Any


def rearrangements(a: Any, b: Any) -> Iterator[Rearranged]:
    """Yield the ways in which `a` may have become `b`.

    The caller checks how well they do.
    """
    if a.ndim == 2 and a.shape[::-1] == b.shape:
        yield Rearranged("transposed", a.T)
    if a.shape == b.shape and a.ndim and a.size:
        yield from _of_one_shape(a, b)


def _of_one_shape(a: Any, b: Any) -> Iterator[Rearranged]:
    """Yield the ways in which an array becomes one of the same shape."""
    if a.ndim > 2 and a.shape[0] == a.shape[1]:
        yield Rearranged("with its first two axes swapped", np.swapaxes(a, 0, 1))
        yield Rearranged("flipped", a[::-1, ::-1])
    for count in _BLOCKS:
        if a.shape[-1] % count == 0 and a.shape[-1] > count:
            yield from _blocks(a, b, count)
    if a.ndim == 1:
        yield from _in_order(a, b, 0, "elements")
    else:
        yield from _in_order(a, b, 0, "rows")
        yield from _in_order(a, b, -1, "columns")


def _blocks(a: object, b: object, count: int) -> Iterator[Rearranged]:
    """Yield blocks of columns in another order, or one of them off by a constant."""
    blocks, port_blocks = np.split(a, count, -1), np.split(b, count, -1)
    for order in itertools.permutations(range(count)):
        if list(order) != sorted(order):
            value = np.concatenate([blocks[n] for n in order], -1)
            numbers = ", ".join(str(n + 1) for n in order)
            text = f"with its {count} blocks of columns as {numbers}: the gates"
            yield Rearranged(text, value)
    shifts = [float((y - x).mean()) for x, y in zip(blocks, port_blocks, strict=True)]
    far = [n for n, shift in enumerate(shifts) if abs(shift) > 1e-3]
    if len(far) == 1:
        (n,) = far
        value = np.concatenate(
            [*blocks[:n], blocks[n] + shifts[n], *blocks[n + 1 :]], axis=-1
        )
        text = f"with {shifts[n]:+.4g} in block {n + 1} of {count}: the forget bias"
        yield Rearranged(text, value)


def _in_order(a: Any, b: Any, axis: int, what: str) -> Iterator[Rearranged]:
    """Yield the parts along one axis in another order, found by their order of size."""
    rows = np.moveaxis(a, axis, 0).reshape(a.shape[axis], -1)
    port_rows = np.moveaxis(b, axis, 0).reshape(b.shape[axis], -1)
    if len(rows) < 3:
        return
    line = np.random.RandomState(0).randn(rows.shape[1])
    order = np.empty(len(rows), int)
    order[np.argsort(port_rows @ line, kind="stable")] = np.argsort(
        rows @ line, kind="stable"
    )
    if not np.array_equal(order, np.arange(len(order))):
        text = f"with its {what} in another order{_of_flatten(order)}"
        yield Rearranged(text, np.take(a, order, axis))


def _of_flatten(order: Any) -> str:
    """Name an order that a flattened picture has, channels first for last."""
    size = len(order)
    for channels in range(2, size // 2 + 1):
        if size % channels == 0:
            first = np.arange(size).reshape(-1, channels).T.ravel()
            if np.array_equal(order, first) or np.array_equal(np.argsort(order), first):
                return f": {channels} channels first for channels last"
    return ""
