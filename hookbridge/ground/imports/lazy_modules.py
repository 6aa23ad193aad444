"""Modules that make their names when a program asks for them."""

from __future__ import annotations

import types
from collections.abc import Iterator, MutableMapping
from typing import Any

# What gives the dictionary of a module, whatever its class says.
_DICTIONARY: Any = vars(types.ModuleType)["__dict__"]


class LazyModule(types.ModuleType):
    """A module whose `__dict__` has the names that `dir` lists, too.

    So `vars` and `__dict__` show what they show of a module that has all its names.
    """

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        """What `vars` returns."""
        return _Names(self)


def made(module: LazyModule) -> dict[str, Any]:
    """Return a dictionary with the names that a module has made until now.

    What is written to it is set in the module, past the module's own `__setattr__`.
    """
    names: dict[str, Any] = _DICTIONARY.__get__(module)
    return names


class _Names(MutableMapping[str, Any]):
    """The names of a module; each value is made when it is read."""

    def __init__(self, module: LazyModule) -> None:
        self._module = module

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self._module, name)
        except AttributeError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: object) -> None:
        setattr(self._module, name, value)

    def __delitem__(self, name: str) -> None:
        delattr(self._module, name)

    def __iter__(self) -> Iterator[str]:
        return (name for name in dir(self._module) if hasattr(self._module, name))

    def __len__(self) -> int:
        return sum(1 for _ in self)
