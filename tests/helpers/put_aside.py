"""TensorFlow, imported by a process before its children mean to import it."""

from __future__ import annotations

import copy
import importlib
import importlib.abc
import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

LEGACY_KERAS = "TF_USE_LEGACY_KERAS"
# What a program is told for which the launcher has the wrong Keras.
OTHER_WORLD = "The fixture `bare_launcher` is for all worlds"
# They know each other by import, so all come back together.
PACKAGES = ("tensorflow", "tf_keras", "keras", "tensorflow_estimator")


def put_tensorflow_aside() -> dict[str, ModuleType]:
    """Imports TensorFlow with Keras 2, so that a child's import of it is quick.

    Until then no module of them is there: a child finds the world that a fresh process
    would find, and the import takes no time. A child that asks for another Keras fails.

    Returns:
      The modules.
    """
    before = set(sys.modules)
    os.environ[LEGACY_KERAS] = "1"
    importlib.import_module("tensorflow")
    del os.environ[LEGACY_KERAS]
    aside = {
        name: sys.modules.pop(name)
        for name in set(sys.modules) - before
        if name.partition(".")[0] in PACKAGES
    }
    sys.meta_path.insert(0, _Aside(aside))
    return aside


class _Aside(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Puts the modules back when one of the packages is imported."""

    def __init__(self, modules: dict[str, ModuleType]) -> None:
        self._modules = modules
        self._specs = {
            name: modules[name].__spec__ for name in PACKAGES if name in modules
        }

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        """Tells the import system of the packages, which are imported here."""
        spec = copy.copy(self._specs.get(name))
        if spec is not None:
            spec.loader = self
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Puts all modules back."""
        flag = os.environ.get(LEGACY_KERAS)
        if "tf_keras" in self._specs and flag != "1":
            raise RuntimeError(
                f"Received {LEGACY_KERAS}={flag}; expected 1, for which this process "
                f"is prepared. {OTHER_WORLD}."
            )
        sys.meta_path.remove(self)
        sys.modules.update(self._modules)
        return self._modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """Leaves the module as it is."""
        module.__spec__ = self._specs[module.__name__]
