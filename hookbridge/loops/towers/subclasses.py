"""Tells of the classes that are derived from another while something runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from hookbridge.patching import patched


@contextlib.contextmanager
def told_of_subclasses(base: Any, tell: Callable[[Any], None]) -> Iterator[None]:
    """Calls `tell(cls)` for each class that is derived from `base` in the context."""
    own = vars(base).get("__init_subclass__")

    def init_subclass(cls: type[Any], /, **kwargs: Any) -> None:
        if own is not None:
            own.__get__(None, cls)(**kwargs)
        else:
            super(base, cls).__init_subclass__(**kwargs)
        tell(cls)

    with patched(base, __init_subclass__=classmethod(init_subclass)):
        yield
