"""Items in groups of those that have the same key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Key = TypeVar("Key")
Item = TypeVar("Item")


def grouped(pairs: Iterable[tuple[Key, Item]]) -> dict[Key, list[Item]]:
    """Return the items of each key, all in the order of `pairs`.

    Args:
      pairs: a key and an item each.
    """
    groups: dict[Key, list[Item]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return groups
