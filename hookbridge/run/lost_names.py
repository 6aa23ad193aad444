"""What Python and NumPy have lost, and old programs use: `distutils`, and names."""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import sys
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec

from hookbridge.migrate.lost_names import LOST
from hookbridge.patching import InstanceMethods

NAME = "distutils"


class LateDistutils:
    """Finds the copy in setuptools, as Python 3.12 and later have no `distutils`."""

    @staticmethod
    def find_spec(
        name: str,
        path: Sequence[str] | None = None,
        target: types.ModuleType | None = None,
    ) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder.find_spec`."""
        if name != NAME or importlib.util.find_spec("setuptools") is None:
            return None
        importlib.import_module("setuptools")  # puts its copy into `sys.modules`
        module = sys.modules.get(NAME)
        return None if module is None else module.__spec__


def bring_back() -> None:
    """Gives modules the names that they have lost; no name changes its meaning."""
    for name, living in {**LOST, "numpy.bool": "bool"}.items():
        module, _, lost = name.rpartition(".")
        place, _, last = living.rpartition(".")
        owner = importlib.import_module(module)
        # Not `hasattr`: NumPy warns of some of these names.
        if lost not in vars(owner):
            value = getattr(importlib.import_module(place) if place else builtins, last)
            InstanceMethods(owner, {lost: value}).install()
