"""One event delivered to all callbacks of a session loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hookbridge import compat
from hookbridge.lifecycle.overrides import called


class Calls:
    """The methods of one event of several callbacks, called in order."""

    __slots__ = ("_eager", "methods")

    def __init__(self, callbacks: Sequence[Any], event: str) -> None:
        self.methods = [getattr(c, event) for c in called(callbacks, event)]
        self._eager = compat.private("eager_mode")

    def __bool__(self) -> bool:
        return bool(self.methods)

    def __call__(self, *args: Any) -> None:
        """Calls every method with the same arguments, under eager execution."""
        # An exception ends the delivery at once, as in `Model.fit`.
        if self.methods:
            with self._eager():
                for method in self.methods:
                    method(*args)
