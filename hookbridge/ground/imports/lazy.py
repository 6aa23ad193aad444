"""Names of a package that are imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from hookbridge.ground.texts.nearest_names import alike


def attach(
    package: str, where: Mapping[str, str]
) -> tuple[tuple[str, ...], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` (PEP 562) of a package.

    Type checkers read the same names in the package's block `if TYPE_CHECKING:`;
    tests/test_public_api.py holds both together.

    Args:
      package: the package's `__name__`.
      where: `{name: module that has it}`. A name that is itself a module stands with
        the package that the module is in.

    Returns:
      The public names and two functions. The first raises AttributeError, with the
      nearest names, for any other name; the second lists the public names and Python's
      own.
    """

    def getattr_(name: str) -> Any:
        if name not in where:
            nearest = ", ".join(alike(name, where))
            raise AttributeError(
                f"module `{package}` has no attribute `{name}`"
                + (f"; the nearest public names: {nearest}" if nearest else "")
            )
        module = importlib.import_module(where[name])
        if name in vars(module):
            return vars(module)[name]
        return importlib.import_module(f"{where[name]}.{name}")

    def dir_() -> list[str]:
        package_names = vars(importlib.import_module(package))
        return sorted(
            {*where, *(name for name in package_names if name.startswith("__"))}
        )

    return tuple(where), getattr_, dir_
