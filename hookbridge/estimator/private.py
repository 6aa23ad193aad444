"""Private modules of Estimator, for names that are not public.

They do not change: tensorflow-estimator 2.15 is the last release.
"""

from __future__ import annotations

import importlib
import types
from typing import Any

from hookbridge.estimator import restored_package


class PrivatePackage:
    """A package of private modules: each is imported when it is asked for."""

    def __init__(self, package: types.ModuleType) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Any:
        package_name = self._package.__name__
        if not hasattr(self._package, name):
            try:
                importlib.import_module(f"{package_name}.{name}")
            except ModuleNotFoundError:
                raise AttributeError(
                    f"`{package_name}` has no `{name}`, and neither has "
                    "tensorflow-estimator 2.15. Define it in your own code."
                ) from None
        value = getattr(self._package, name)
        return PrivatePackage(value) if hasattr(value, "__path__") else value

    def __dir__(self) -> list[str]:
        return dir(self._package)


def python() -> PrivatePackage:
    """Return `tensorflow_estimator.python.estimator`, with its view of TensorFlow."""
    restored_package.namespaces()
    package_name = f"{restored_package.PACKAGE}.python.estimator"
    return PrivatePackage(importlib.import_module(package_name))
