"""Functions that are kept with a model, so that no later run traces them again."""

from __future__ import annotations

from typing import Any

# Hooks that fetch something else in every run would fill the memory.
_MOST = 64


class FunctionCache:
    """The functions used last, by what they depend on."""

    def __init__(self) -> None:
        self._entries: dict[Any, tuple[Any, Any]] = {}

    def get(self, key: Any) -> Any:
        """The function of a key, or None."""
        found = self._entries.get(key)
        return None if found is None else found[0]

    def add(self, key: Any, function: Any, keep: Any) -> None:
        """Keeps a function.

        Args:
          key: what it depends on.
          function: the function.
          keep: the objects whose ids are in the key.
        """
        if len(self._entries) >= _MOST:
            del self._entries[next(iter(self._entries))]
        self._entries[key] = function, keep
