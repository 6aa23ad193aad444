"""The names of the parts of a batch, by which recordings of both loops are compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def named_parts(name: str, value: object) -> Iterator[tuple[str, Any]]:
    """Yield what dicts and lists in a batch hold, by the paths to it.

    Args:
      name: the name of the whole, such as "x"; its parts are "x/0" or "x/age".
      value: a dict or a list, which may hold others; anything else is a part itself.
    """
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(value, Mapping):
        pairs = value.items()
    elif isinstance(value, (list, tuple)):
        pairs = enumerate(value)
    else:
        yield name, value
        return
    for key, part in pairs:
        yield from named_parts(f"{name}/{key}", part)
