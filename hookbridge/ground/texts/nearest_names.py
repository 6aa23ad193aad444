"""Names that a message suggests instead of one that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_ALIKE = 0.5  # of `difflib`: `acc` and `accuracy` have 0.55


def alike(name: str, choices: Iterable[str], limit: int = 5) -> list[str]:
    """Return the known names that are like `name`, best first.

    None is better than a bad one. After them come names of other scopes with the same
    last part, such as `a/Relu:0` for `b/Relu:0`.

    Args:
      name: what somebody has written.
      choices: the names that exist.
      limit: how many are returned at most.
    """
    names = sorted(set(choices))
    matches = difflib.get_close_matches(name, names, n=limit, cutoff=_ALIKE)
    same = [k for k in names if _last_part(k) == _last_part(name)]
    return list(dict.fromkeys([*matches, *same]))[:limit]


def suggestion(name: str, choices: Iterable[str], limit: int = 5) -> str:
    """Return the end of a sentence that names what is alike; empty if nothing is.

    Args:
      name: what somebody has written.
      choices: the names that exist.
      limit: how many are named at most.
    """
    quoted = ", ".join(f"`{similar}`" for similar in alike(name, choices, limit))
    return f"; the nearest: {quoted}" if quoted else ""


def nearest(name: str, choices: Iterable[str], limit: int = 5) -> list[str]:
    """Return the known names that are like `name`; the first few of all if none is.

    Args:
      name: what somebody has written.
      choices: the names that exist.
      limit: how many are returned at most.
    """
    names = sorted(set(choices))
    return alike(name, names, limit) or names[:limit]


def _last_part(name: str) -> str:
    return name.rpartition("/")[2].partition(":")[0]
