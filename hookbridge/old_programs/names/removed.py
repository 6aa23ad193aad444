"""Names that Python and other libraries had in the time of TensorFlow 1.

data/removed.json has a row for each: the library, the version that lost it, and what
stands for it. `np.bool` and `np.long` are none of them: NumPy 2 has them again.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from hookbridge.old_programs.names.target import table


class Removed(NamedTuple):
    """A name that a library has no more."""

    library: str
    lost_in: str  # the version that has it no more
    living: str = ""  # the name of today for the same thing; empty if none is the same
    hint: str = ""  # what to write, in words, where there is no such name
    # Whether `hookbridge run` gives back what has no such name.
    is_given_back: bool = False


@functools.cache
def removed() -> dict[str, Removed]:
    """Every such name, under the name by which it was imported."""
    return {
        name: Removed(
            row["library"],
            row["lost in"],
            row.get("living", ""),
            row.get("hint", ""),
            row.get("given back", False),
        )
        for name, row in table("removed").items()
    }


@functools.cache
def roots() -> frozenset[str]:
    """The top modules that have lost names."""
    return frozenset(name.partition(".")[0] for name in removed())


def removed_part(name: str) -> str:
    """The longest beginning of a dotted name that is a removed name; may be empty."""
    if name.partition(".")[0] not in roots():
        return ""
    parts = name.split(".")
    beginnings = (".".join(parts[:end]) for end in range(len(parts), 1, -1))
    return next((one for one in beginnings if one in removed()), "")
