"""Private modules of TensorFlow, with the names that were removed since version 1.

TensorFlow's own modules stay as they are: a program gets a view of them.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import operator
import os
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hookbridge.estimator import revive, stand_ins
from hookbridge.ground.compat import LAST_WITH_KERAS2, tf_version
from hookbridge.ground.patching import assign
from hookbridge.tf1_names.private_names import (
    LAYERS,
    MOVED,
    OTHERS,
    PUBLIC,
    places_in_keras,
)

# Private modules of TensorFlow 1 that are a package of their own today.
ESTIMATOR = "tensorflow.python.estimator"
PYTHON = "tensorflow.python"
PYTHON_KERAS = "tensorflow.python.keras"
KERAS = "keras"


class View(types.ModuleType):
    """A module with the names of several modules, the first one that has it.

    `own` has names that come before them, and the function that makes each value.
    """

    def __init__(
        self,
        name: str,
        modules: Sequence[Any],
        own: Mapping[str, Callable[[], Any]] | None = None,
    ) -> None:
        super().__init__(name, modules[0].__doc__)
        self.__dict__["_view_modules"] = tuple(modules)
        self.__dict__["_view_own"] = dict(own or {})
        for attribute in ("__path__", "__file__"):
            if hasattr(modules[-1], attribute):
                self.__dict__[attribute] = getattr(modules[-1], attribute)

    def __getattr__(self, name: str) -> Any:
        make = self.__dict__["_view_own"].get(name)
        if make is not None:
            self.__dict__[name] = value = make()
            return value
        for module in self.__dict__["_view_modules"]:
            try:
                return getattr(module, name)
            except AttributeError:
                continue
        raise AttributeError(
            f"module '{self.__name__}' has no attribute '{name}'; TensorFlow removed "
            "it, and `hookbridge run` has no replacement for it"
        )

    def __dir__(self) -> list[str]:
        names = {name for module in self._view_modules for name in dir(module)}
        return sorted({*names, *self._view_own, *self.__dict__} - {"__all__"})


class _Private(View):
    """A private module: what a program sets there is set in TensorFlow, as natively.

    Deleting such a name restores what was there, as `mock.patch` wants it.
    """

    def __setattr__(self, name: str, value: object) -> None:
        real = self.__dict__["_view_modules"][0]
        if name in self.__dict__["_view_own"] or name not in vars(real):
            super().__setattr__(name, value)
            return
        earlier = self.__dict__.setdefault("_view_earlier", {})
        earlier.setdefault(name, []).append(getattr(real, name))
        assign(real, **{name: value})

    def __delattr__(self, name: str) -> None:
        earlier = self.__dict__.get("_view_earlier", {}).get(name)
        if earlier:
            assign(self.__dict__["_view_modules"][0], **{name: earlier.pop()})
        else:
            super().__delattr__(name)


class Package(types.ModuleType):
    """`tensorflow.python` by TensorFlow itself: `tf.python.ops.array_ops`.

    What is in it is found as an import finds it.
    """

    def __getattr__(self, name: str) -> Any:
        dotted = f"{self.__name__}.{name}"
        try:
            value = None if name.startswith("__") else find(dotted)
        except ModuleNotFoundError:
            value = None
        if value is None:
            value = getattr(find(self.__name__), name)
        elif hasattr(value, "__path__"):
            value = Package(dotted)
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        return dir(find(self.__name__))


def find(dotted: str) -> Any:
    """Return the module that a name below `tensorflow.python` means."""
    if dotted == PYTHON_KERAS or dotted.startswith(f"{PYTHON_KERAS}."):
        return _find_in_keras(dotted)
    return _find_in_tensorflow(dotted)


@functools.cache
def _find_in_tensorflow(dotted: str) -> Any:
    """Return a private module; public names replace those that were removed.

    Many functions have moved to another private module since TensorFlow 1. Most of
    them are also public, under the same name.
    """
    v1 = importlib.import_module("tensorflow").compat.v1
    try:
        real = importlib.import_module(dotted)
    except ModuleNotFoundError:
        stand_in = _in_its_place(dotted)
        if stand_in is None:
            raise
        return stand_in
    if hasattr(real, "__path__"):
        return real  # a package holds only modules
    own_names = _others(dotted)
    if dotted in LAYERS:
        return View(dotted, (v1.layers, real), own_names)
    public = [
        operator.attrgetter(name)(v1) for part, name in PUBLIC.items() if part in dotted
    ]
    if dotted == f"{PYTHON}.util.tf_export":
        own_names["estimator_export"] = _estimator_export
    return _Private(dotted, (real, *public, v1), own_names)


def _others(dotted: str) -> dict[str, Callable[[], Any]]:
    """Return the names of a module that are something else than in TensorFlow 1."""
    tf = importlib.import_module("tensorflow")
    makers: dict[str, Callable[[], Any]] = {}
    for name, replacement in OTHERS.items():
        module, _, attribute = name.rpartition(".")
        if module == dotted:
            path = replacement.removeprefix("tf.")
            if not path.startswith("compat."):
                path = f"compat.v1.{path}"
            makers[attribute] = functools.partial(operator.attrgetter(path), tf)
    return makers


def _in_its_place(dotted: str) -> Any:
    """Return what replaces a removed private module; None if nothing does."""
    if f"{dotted}.".startswith(f"{ESTIMATOR}."):
        in_estimator = dotted.replace("tensorflow", "tensorflow_estimator", 1)
        return importlib.import_module(in_estimator)
    if dotted in MOVED:
        return _find_in_tensorflow(MOVED[dotted])
    if inside := [name for name in MOVED if name.rpartition(".")[0] == dotted]:
        places = {n.rpartition(".")[2]: functools.partial(find, n) for n in inside}
        return View(dotted, (types.ModuleType(dotted),), places)
    if dotted in stand_ins.STAND_INS:
        return stand_ins.load(dotted)  # what Estimator itself gets
    return None


def _estimator_export() -> Any:
    """Return the decorator of Estimator's own code, which left TensorFlow with it."""
    revive.namespaces()
    return _find_in_tensorflow(f"{ESTIMATOR}.estimator_export").estimator_export


def keras2_package() -> str:
    """Return the package that `keras` means: tf_keras where `tf.keras` is tf_keras."""
    is_legacy = os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true")
    return "tf_keras" if is_legacy and tf_version() > LAST_WITH_KERAS2 else KERAS


def importable(names: Iterable[str]) -> list[Any]:
    """Return those of some modules that exist."""
    modules = []
    for name in names:
        with contextlib.suppress(ModuleNotFoundError):
            modules.append(importlib.import_module(name))
    return modules


@functools.cache
def _find_in_keras(dotted: str) -> Any:
    """Return a module of `tensorflow.python.keras`, taken from the Keras of `tf.keras`.

    TensorFlow keeps an old copy of Keras there, whose classes do not fit `tf.keras`.
    """
    package = keras2_package()
    if package == KERAS and tf_version() > LAST_WITH_KERAS2:
        return importlib.import_module(dotted)  # `tf.keras` is Keras 3
    modules = importable(places_in_keras(dotted, package))
    if not modules:
        raise ModuleNotFoundError(f"No module named '{dotted}'", name=dotted)
    return View(dotted, modules, _others(dotted))
