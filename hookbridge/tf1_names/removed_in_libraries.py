"""Names that Python and other libraries had in the time of TensorFlow 1.

data/removed_names.json has a row for each: the library, the version that removed it,
and what replaces it. data/removed_places.json has places without names which another
place keeps: `np.lib.pad` is `np.pad`, and `scipy.array` is `np.array`. `np.bool` and
`np.long` are not among them: NumPy 2 has them again.
"""

from __future__ import annotations

import functools
import sys
from typing import NamedTuple

from hookbridge.ground.groups import grouped
from hookbridge.ground.imports.extras import is_installed
from hookbridge.tf1_names.syntax import beginnings
from hookbridge.tf1_names.target import table


class RemovedName(NamedTuple):
    """A name that a library has removed."""

    library: str
    removed_in: str  # the version that removed it
    replacement: str = ""  # the current name of the same thing; empty if there is none
    hint: str = ""  # what to write, in words, where there is no such name
    # Whether `hookbridge run` gives back what has no such name.
    is_restored: bool = False
    is_method: bool = False  # of the objects of a class, which is a part of the name
    # A name that a file has to have for it, since others have such a method, too.
    seen_with: str = ""
    # Whether objects of other classes have such a method, and keep it.
    is_of_others: bool = False


@functools.cache
def removed_names() -> dict[str, RemovedName]:
    """Return every such name, under the name by which it was imported."""
    moved = {
        f"{row['place']}.{name}": RemovedName(
            row["library"], row["removed in"], f"{row['today']}.{name}"
        )
        for row in table("removed_places")
        for name in row["names"]
    }
    return moved | {
        name: RemovedName(
            row["library"],
            row["removed in"],
            row.get("replacement", ""),
            row.get("hint", ""),
            row.get("given back", False),
            row.get("method", False),
            row.get("seen with", ""),
            row.get("others have it", False),
        )
        for name, row in table("removed_names").items()
    }


@functools.cache
def roots() -> frozenset[str]:
    """Return the top modules with removed names."""
    return frozenset(name.partition(".")[0] for name in removed_names())


def removed_methods(method: str) -> list[str]:
    """Return the removed methods of this name, of whatever class and library."""
    return _methods().get(method, [])


@functools.cache
def _methods() -> dict[str, list[str]]:
    names = (name for name, row in removed_names().items() if row.is_method)
    return grouped((name.rpartition(".")[2], name) for name in names)


def is_there(name: str) -> bool:
    """Return whether this Python has a name that later ones removed for good.

    A package may have a module of Python again.
    """
    row = removed_names()[name]
    if row.library != "Python" or row.replacement or row.is_restored:
        return False
    removed_in = tuple(map(int, row.removed_in.split(".")))
    return sys.version_info < removed_in or ("." not in name and is_installed(name))


def removed_part(name: str) -> str:
    """Return the longest beginning of a dotted name that is a removed name.

    May be empty.
    """
    if name.partition(".")[0] not in roots():
        return ""
    known = (start for start, _ in beginnings(name) if start in removed_names())
    return next(known, "")
