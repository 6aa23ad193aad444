"""Names of a package that are imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lookup(package: dict[str, Any], where: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package (PEP 562).

    Args:
      package: the package's `globals()`, in which found values are stored.
      where: `{public name: the module that defines it}`; the name of a submodule maps
        to that submodule.
    """

    def getattr_(name: str) -> Any:
        if name not in where:
            raise AttributeError(
                f"module `{package['__name__']}` has no attribute `{name}`; public "
                f"names: {', '.join(sorted(where))}"
            )
        found: Any = importlib.import_module(where[name])
        if where[name] != f"{package['__name__']}.{name}":
            found = getattr(found, name)
        package[name] = found
        return found

    return getattr_
