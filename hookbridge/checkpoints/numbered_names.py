"""Entries of a checkpoint for variables whose names have other numbers.

Keras numbers the models, layers and optimizers of a process: the second model has
`adam_1/sequential_1_dense_2_kernel_momentum` where the first one has
`adam/sequential_dense_kernel_momentum`. The second of a kind in the model is the second
of that kind in the checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hookbridge.ground.groups import grouped

_NUMBER = re.compile(r"_(\d+)(?=_|/|$)")


def pairs_by_order(names: Iterable[str], entries: Iterable[str]) -> dict[str, str]:
    """Pair names with entries that are equal but for the numbers in them.

    Args:
      names: the names of variables.
      entries: the names of entries of a checkpoint.

    Returns:
      `{name: entry}` of the names that have as many entries of their kind as there are
      names of it.
    """
    names_by_kind, entries_by_kind = _by_kind(names), _by_kind(entries)
    return {
        name: entry
        for kind, members in names_by_kind.items()
        if len(entries_by_kind.get(kind, ())) == len(members)
        for name, entry in zip(members, entries_by_kind[kind], strict=True)
    }


def without_numbers(name: str) -> str:
    """Return a name without the numbers that Keras adds."""
    return _NUMBER.sub("", name)


def _by_kind(names: Iterable[str]) -> dict[str, list[str]]:
    """Group names by what is left without numbers, in the order of their numbers."""
    kinds = grouped((without_numbers(name), name) for name in names)
    return {kind: sorted(members, key=_numbers) for kind, members in kinds.items()}


def _numbers(name: str) -> tuple[int, ...]:
    """Return the number of each part of a name; 0 of a part without a number."""
    parts = re.split(r"_(?!\d+(?:_|/|$))|/", name)
    return tuple(int(_last_number(part)) for part in parts)


def _last_number(part: str) -> str:
    match = re.search(r"_(\d+)$", part)
    return match[1] if match is not None else "0"
