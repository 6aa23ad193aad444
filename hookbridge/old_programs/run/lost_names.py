"""What Python and NumPy have lost, and old programs use."""

from __future__ import annotations

import builtins
import collections
import importlib
import inspect
from typing import Any

from hookbridge.ground.patching import InstanceMethods
from hookbridge.old_programs.names.resolution import REMOVED_FUNCTIONS, REMOVED_NAMES

# What `inspect.getargspec` returned until Python 3.11.
ArgSpec = collections.namedtuple("ArgSpec", "args varargs keywords defaults")


def getargspec(func: Any) -> ArgSpec:
    """`inspect.getargspec`."""
    return ArgSpec(*inspect.getfullargspec(func)[:4])


def asscalar(a: Any) -> Any:
    """`numpy.asscalar`."""
    return importlib.import_module("numpy").asarray(a).item()


def bring_back() -> None:
    """Gives modules the names that they have lost; no name changes its meaning."""
    ours = {name: f"{__name__}.{name.rpartition('.')[2]}" for name in REMOVED_FUNCTIONS}
    for name, living in {**REMOVED_NAMES, "numpy.bool": "bool", **ours}.items():
        module, _, lost = name.rpartition(".")
        place, _, last = living.rpartition(".")
        owner = importlib.import_module(module)
        # Not `hasattr`: NumPy warns of some of these names.
        if lost not in vars(owner):
            value = getattr(importlib.import_module(place) if place else builtins, last)
            InstanceMethods(owner, {lost: value}).install()
