"""What others lead to: the ops of a graph, the code of a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")


def reached(
    starts: Iterable[Item], step: Callable[[Item], Iterable[Item]]
) -> frozenset[Item]:
    """Return items, and all that are reached from them.

    It is not recursive: graphs can be deeper than Python's stack.

    Args:
      starts: the items at which the walk begins.
      step: returns the items that one item leads to.
    """
    visited: set[Item] = set()
    todo = list(starts)
    while todo:
        item = todo.pop()
        if item not in visited:
            visited.add(item)
            todo += step(item)
    return frozenset(visited)
