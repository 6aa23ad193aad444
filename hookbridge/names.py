"""Finding the name that a user may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], limit: int = 5) -> list[str]:
    """The names most like `name`, best first; the first few if none is like it."""
    names = sorted(set(known))
    return difflib.get_close_matches(name, names, n=limit, cutoff=0.4) or names[:limit]
