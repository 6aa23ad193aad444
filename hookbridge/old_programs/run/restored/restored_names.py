"""What Python and other libraries removed, and old programs use."""

from __future__ import annotations

import builtins
import functools
import importlib.util
import inspect
import pkgutil
import sys
import types
from typing import Any, NamedTuple

import numpy as np

from hookbridge import errors
from hookbridge.ground.imports.extras import is_installed
from hookbridge.ground.patching import MISSING
from hookbridge.legacy.removed_attributes import current_name
from hookbridge.tf1_names.removed_in_libraries import removed_names


class ArgSpec(NamedTuple):
    """What `inspect.getargspec` returned until Python 3.11."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def getargspec(func: object) -> ArgSpec:
    """`inspect.getargspec`."""
    return ArgSpec(*inspect.getfullargspec(func)[:4])


# `numpy.sctypes`: the kinds of numbers, and their types.
_SCTYPES: dict[str, list[type]] = {
    "int": [np.int8, np.int16, np.int32, np.int64],
    "uint": [np.uint8, np.uint16, np.uint32, np.uint64],
    "float": [np.float16, np.float32, np.float64, np.longdouble],
    "complex": [np.complex64, np.complex128, np.clongdouble],
    "others": [bool, object, bytes, str, np.void],
}


class Cast:
    """`numpy.cast`: `cast[kind](values)` is an array of that kind."""

    def __getitem__(self, kind: Any) -> Any:
        """Return the function that makes such an array."""
        return lambda values: np.array(values).astype(kind)


def load_source(name: str, pathname: str, file: object = None) -> types.ModuleType:
    """`imp.load_source`: the module of a file, loaded again."""
    spec = importlib.util.spec_from_file_location(name, pathname)
    if spec is None or spec.loader is None:
        raise ImportError(f"{pathname} is not a Python file", name=name, path=pathname)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_OURS: dict[str, Any] = {
    "inspect.getargspec": getargspec,
    "numpy.NINF": -float("inf"),
    "numpy.NZERO": -0.0,
    "numpy.PZERO": 0.0,
    "numpy.cast": Cast(),
    "numpy.sctypes": _SCTYPES,
    "imp.load_source": load_source,
    "sys.setcheckinterval": lambda n: None,  # without effect since Python 3.2
}


# NumPy 2 has these again, with another meaning for the second one.
_AGAIN: dict[str, Any] = {"numpy.bool": bool, "numpy.long": int}


@functools.cache
def names() -> frozenset[str]:
    """Return the names of modules that `value` knows, without methods."""
    rows = removed_names().items()
    known = {
        n for n, row in rows if not row.is_method and (row.replacement or n in _OURS)
    }
    return frozenset({*known, *_AGAIN})


@functools.cache
def modules() -> frozenset[str]:
    """Return the modules that have such names, and the modules above them."""
    modules_above: set[str] = set()
    for name in names():
        while name := name.rpartition(".")[0]:
            modules_above.add(name)
    return frozenset(modules_above)


def value(name: str) -> Any:
    """Return what a name of `names` meant.

    `MISSING` if what it needs is not installed.
    """
    if name in _AGAIN:
        return _AGAIN[name]
    if name in _OURS:
        return _OURS[name]
    replacement = current_name(removed_names()[name].replacement)
    root = replacement.partition(".")[0]
    if hasattr(builtins, root):  # `str.maketrans`
        return pkgutil.resolve_name(f"builtins.{replacement}")
    if not is_installed(root):
        return MISSING
    try:
        return pkgutil.resolve_name(replacement)
    except (ImportError, AttributeError):
        raise errors.PrivateNameMovedError(
            f"`{name}` was removed. hookbridge uses `{replacement}` instead, which the "
            f"installed `{root}` does not have. Install a release that has it, or "
            "change the program."
        ) from None


class RestoredModule(types.ModuleType):
    """A module that its library has removed, with the names that `value` knows."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "Names of a module that its library has removed.")
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        full = f"{self.__name__}.{name}"
        if full in names() and (restored := value(full)) is not MISSING:
            return restored
        if full in modules():
            return module(full)
        raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        start = f"{self.__name__}."
        return sorted(n.removeprefix(start) for n in names() if n.startswith(start))


@functools.cache
def module(name: str) -> RestoredModule:
    """Return the module of `modules` that a library has removed."""
    return RestoredModule(name)


def module_or_value(name: str) -> Any:
    """Return what a removed module meant; `MISSING` if nothing of it is known."""
    if name in names() and "." in name:
        return value(name)
    return module(name) if name in modules() else MISSING
