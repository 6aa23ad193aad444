"""Names that a message suggests instead of one that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, choices: Iterable[str], limit: int = 5) -> list[str]:
    """The known names most like `name`, best first; the first few if none is like it.

    After them come names of other scopes with the same last part, such as `a/Relu:0`
    for `b/Relu:0`.
    """
    names = sorted(set(choices))
    near = difflib.get_close_matches(name, names, n=limit, cutoff=0.4)
    alike = [k for k in names if _last_part(k) == _last_part(name)]
    return list(dict.fromkeys([*near, *alike]))[:limit] or names[:limit]


def _last_part(name: str) -> str:
    return name.rpartition("/")[2].partition(":")[0]
