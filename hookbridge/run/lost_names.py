"""What Python and NumPy have lost, and old programs use: `distutils`, and names."""

from __future__ import annotations

import builtins
import collections
import importlib
import importlib.util
import inspect
import sys
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from typing import Any

from hookbridge.migrate.fates import LOST, LOST_FUNCTIONS
from hookbridge.patching import InstanceMethods

NAME = "distutils"


# What `inspect.getargspec` returned until Python 3.11.
ArgSpec = collections.namedtuple("ArgSpec", "args varargs keywords defaults")


def getargspec(func: Any) -> ArgSpec:
    """`inspect.getargspec`."""
    return ArgSpec(*inspect.getfullargspec(func)[:4])


def asscalar(a: Any) -> Any:
    """`numpy.asscalar`."""
    return importlib.import_module("numpy").asarray(a).item()


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
    ours = {name: f"{__name__}.{name.rpartition('.')[2]}" for name in LOST_FUNCTIONS}
    for name, living in {**LOST, "numpy.bool": "bool", **ours}.items():
        module, _, lost = name.rpartition(".")
        place, _, last = living.rpartition(".")
        owner = importlib.import_module(module)
        # Not `hasattr`: NumPy warns of some of these names.
        if lost not in vars(owner):
            value = getattr(importlib.import_module(place) if place else builtins, last)
            InstanceMethods(owner, {lost: value}).install()
