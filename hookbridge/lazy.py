"""Names of a package that are imported on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lookup(package: str, where: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package (PEP 562).

    Args:
      package: the package's `__name__`.
      where: `{public name: module that defines it, or that it is}`.
    """

    def getattr_(name: str) -> Any:
        if name not in where:
            raise AttributeError(
                f"module `{package}` has no attribute `{name}`; public names: "
                f"{', '.join(sorted(where))}"
            )
        value: Any = importlib.import_module(where[name])
        if where[name] != f"{package}.{name}":
            value = getattr(value, name)
        vars(sys.modules[package])[name] = value
        return value

    return getattr_
