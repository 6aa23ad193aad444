"""Which ops of a graph others lead to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def reached(ops: Iterable[Any], step: Callable[[Any], Iterable[Any]]) -> frozenset[Any]:
    """Return ops, and all that are reached from them.

    Args:
      ops: the ops at which the walk begins.
      step: returns the ops that one op leads to.
    """
    visited, todo = set(), list(ops)
    while todo:
        op = todo.pop()
        if op not in visited:
            visited.add(op)
            todo += step(op)
    return frozenset(visited)


def inputs_of(op: Any) -> list[Any]:
    """Return the ops whose values an op takes."""
    return [tensor.op for tensor in op.inputs]
