"""`tf.contrib` and its modules, as a program that is run sees them."""

from __future__ import annotations

import functools
import importlib
import types
from collections.abc import Callable
from typing import Any, NoReturn

from hookbridge import errors
from hookbridge.contrib.without_replacement import Removed
from hookbridge.estimator import private, restored_package
from hookbridge.ground import compat
from hookbridge.ground.imports import extras
from hookbridge.ground.imports.lazy_modules import LazyModule, made
from hookbridge.tf1_names import contrib_names
from hookbridge.tf1_names.contrib_names import Candidate, Source
from hookbridge.tf1_names.outcome import hint
from hookbridge.tf1_names.target import had_in_tf1

_MISSING: Any = object()
# Root of a source -> what has its names, or the modules with them.
_OWNERS: dict[str, Callable[[], Any]] = {
    "tf": lambda: importlib.import_module("tensorflow"),
    "ours": lambda: importlib.import_module("hookbridge.contrib.areas"),
    "estimator": lambda: restored_package.namespaces().v1,
    "estimator_python": private.python,
}
# What is between an area and its files: `contrib.layers.python.layers.x`.
_FILES = "python"


class Contrib(LazyModule):
    """A module of `tf.contrib`, where a real module may come first."""

    def __init__(self, path: str, real: types.ModuleType | None = None) -> None:
        name = ".".join(filter(None, ("tensorflow.contrib", path)))
        super().__init__(
            name,
            "The parts of tf.contrib that hookbridge restores; see "
            "docs/what-comes-back.md.",
        )
        self._contrib_path, self._contrib_real = path, real
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        value = getattr(self._contrib_real, name, _MISSING)
        if value is _MISSING:
            value = _resolve_below(self._contrib_path, name)
        made(self)[name] = value
        return value

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise: a name in a file that was taken for a module is a removed function."""
        Removed(self.__name__.replace("tensorflow", "tf", 1))(*args, **kwargs)

    def __dir__(self) -> list[str]:
        """Return the names that exist: what a program finds that lists the module."""
        names = {*contrib_names.listed_names(self._contrib_path)}
        if self._contrib_real is not None:
            names.update(dir(self._contrib_real))
        existing = {
            n for n, value in made(self).items() if not isinstance(value, Removed)
        }
        return sorted(n for n in names | existing if not n.startswith("_contrib_"))


class _Rewritten(Contrib):
    """A module of `hb.contrib`: it has no attribute for a removed name.

    So `hasattr` says of it what it says of `tf.contrib` under `hookbridge run`.
    """

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        if isinstance(value, Removed):
            del made(self)[name]
            return value()  # which raises
        if type(value) is Contrib:
            value = _Rewritten(value._contrib_path, value._contrib_real)
            made(self)[name] = value
        return value


class _Removed(_Rewritten):
    """A module of `hb.contrib.removed`, where a removed module can be read.

    A program may import one and do without what it had.
    """

    def __getattr__(self, name: str) -> Any:
        path = ".".join(filter(None, (self._contrib_path, name)))
        if not contrib_names.was_module(path):
            return super().__getattr__(name)
        made(self)[name] = value = _Removed(path)
        return value


@functools.cache
def root() -> Contrib:
    """`tf.contrib`."""
    return Contrib("")


@functools.cache
def root_of_rewritten() -> Contrib:
    """Return `hb.contrib`."""
    return _Rewritten("")


@functools.cache
def removed() -> Contrib:
    """Return `hb.contrib.removed`."""
    return _Removed("")


def resolve_path(path: str) -> Any:
    """Return what stands behind a path below `tf.contrib`, or `None`."""
    for candidate in contrib_names.candidates(path):
        value = _resolve_candidate(candidate)
        if value is not _MISSING:
            return value
    return Contrib(path) if contrib_names.areas_above(path) else None


def _resolve_candidate(candidate: Candidate) -> Any:
    """Return the object of a candidate, or `_MISSING`."""
    source, name, suffix = candidate
    if suffix:  # each part of a path is looked up in the object before it
        return _MISSING
    value = resolve_source(source)
    return _attribute_or_missing(value, name) if name else value


def _resolve_below(path: str, name: str) -> Any:
    """Return the attribute `name` of the module `path`."""
    full = f"{path}.{name}" if path else name
    area, file, _ = contrib_names.in_files(full)
    if file is not None:
        return _resolve_in_files(full, area)
    if name == _FILES and contrib_names.areas_above(path):
        return Contrib(full)
    dotted = f"tf.contrib.{full}"
    was_there = had_in_tf1(dotted)
    # What the sources of an area have besides is none of `tf.contrib`.
    value = (
        resolve_path(full) if was_there or contrib_names.is_available(dotted) else None
    )
    if value is not None:
        return value
    if was_there:
        return Removed(dotted)
    raise AttributeError(f"TensorFlow 1.15 has no `{dotted}`. Instead: {hint(dotted)}.")


def _resolve_in_files(path: str, area: str) -> Any:
    """Return what a path through the files of an area means.

    A module may be another file, whose other names are looked for in the area.
    """
    if (source := contrib_names.module_of_file(path)) is not None:
        return Contrib(path, resolve_source(source))
    module = None
    for candidate in contrib_names.candidates(path):
        value = _resolve_candidate(candidate)
        if value is not _MISSING and not isinstance(value, types.ModuleType):
            return value
        module = module or (None if value is _MISSING else value)
    name = path.rpartition(".")[2]
    if module is not None or (name.islower() and not name.startswith("_")):
        return Contrib(path, module)
    return Removed(f"tf.contrib.{area}.{name}")


def resolve_source(source: Source) -> Any:
    """Return the object of a source.

    See `hookbridge.tf1_names.contrib_names`.
    """
    root, parts = source.root, source.name.split(".") if source.name else []
    if root in ("tensorboard", "tf_slim"):
        extras.check(root, user="What the program uses of tf.contrib")
        return _import_path(source.dotted)
    value: Any = compat.private(parts.pop(0)) if root == "private" else _OWNERS[root]()
    for part in parts:
        value = _attribute_or_missing(value, part)
        if value is _MISSING:
            raise errors.PrivateNameMovedError(
                f"`{source.dotted}` is not in this TensorFlow."
            )
    return value


def _import_path(dotted: str) -> Any:
    """Return a module of another package, or a name in one."""
    try:
        # Not by attribute: packages of tf_slim bind other modules to the names of their
        # own submodules.
        return importlib.import_module(dotted)
    except ModuleNotFoundError:
        module, _, name = dotted.rpartition(".")
        return getattr(importlib.import_module(module), name)


def _attribute_or_missing(module: Any, name: str) -> Any:
    """Return an attribute of a module, or a module in it not yet imported."""
    value = getattr(module, name, _MISSING)
    if value is _MISSING and hasattr(module, "__path__"):
        try:
            value = importlib.import_module(f"{module.__name__}.{name}")
        except ModuleNotFoundError:
            return _MISSING
    return value
