"""Private modules of TensorFlow, with the names that were removed since version 1.

TensorFlow's own modules stay as they are: a program gets a view of them.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import operator
import os
import pkgutil
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hookbridge.contrib.module_views import PrivateView, View
from hookbridge.estimator import restored_package, stand_ins
from hookbridge.ground.compat import LAST_WITH_KERAS2, tf_version
from hookbridge.ground.imports.lazy_modules import LazyModule, made
from hookbridge.tf1_names.private_names import (
    LAYERS,
    MOVED,
    OTHERS,
    PUBLIC,
    estimator_of_tpu,
    places_in_keras,
)
from hookbridge.tf1_names.syntax import is_below

# Private modules of TensorFlow 1 that are a package of their own today.
ESTIMATOR = "tensorflow.python.estimator"
PYTHON = "tensorflow.python"
KERAS = "keras"


class Package(LazyModule):
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
        made(self)[name] = value
        return value

    def __dir__(self) -> list[str]:
        return dir(find(self.__name__))


def find(dotted: str) -> Any:
    """Return the module that a name below `tensorflow.python` means."""
    if is_below(dotted, f"{PYTHON}.keras"):
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
    overrides = _others(dotted)
    if dotted in LAYERS:
        return View(dotted, (v1.layers, real), overrides)
    public = [
        operator.attrgetter(name)(v1) for part, name in PUBLIC.items() if part in dotted
    ]
    if dotted == f"{PYTHON}.util.tf_export":
        overrides["estimator_export"] = _estimator_export
    return PrivateView(dotted, (real, *public, v1), overrides)


def _others(dotted: str) -> dict[str, Callable[[], Any]]:
    """Return the names of a module that are something else than in TensorFlow 1."""
    tf = importlib.import_module("tensorflow")
    makers: dict[str, Callable[[], Any]] = {
        name: functools.partial(pkgutil.resolve_name, current)
        for name, current in _inside(dotted, MOVED).items()
    }
    for name, replacement in _inside(dotted, OTHERS).items():
        path = replacement.removeprefix("tf.")
        if not path.startswith("compat."):
            path = f"compat.v1.{path}"
        makers[name] = functools.partial(operator.attrgetter(path), tf)
    return makers


def _inside(dotted: str, table: Mapping[str, str]) -> dict[str, str]:
    """Return the names that a table has of a module, with what they are today."""
    parts = ((*name.rpartition("."), current) for name, current in table.items())
    return {name: current for module, _, name, current in parts if module == dotted}


def _in_its_place(dotted: str) -> Any:
    """Return what replaces a removed private module; None if nothing does."""
    if is_below(dotted, ESTIMATOR):
        in_estimator = dotted.replace("tensorflow", "tensorflow_estimator", 1)
        return importlib.import_module(in_estimator)
    if in_estimator := estimator_of_tpu(dotted):
        return importlib.import_module(in_estimator)
    if dotted in MOVED:
        return _find_in_tensorflow(MOVED[dotted])
    if inside := _inside(dotted, MOVED):
        places = {n: functools.partial(find, f"{dotted}.{n}") for n in inside}
        return View(dotted, (types.ModuleType(dotted),), places)
    if dotted in stand_ins.STAND_INS:
        return stand_ins.load(dotted)  # what Estimator itself gets
    return None


def _estimator_export() -> Any:
    """Return the decorator of Estimator's own code, which left TensorFlow with it."""
    restored_package.namespaces()
    return _find_in_tensorflow(f"{ESTIMATOR}.estimator_export").estimator_export


def keras2_package() -> str:
    """Return the package that `keras` means: tf_keras where `tf.keras` is tf_keras."""
    is_legacy = os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true")
    return "tf_keras" if is_legacy and tf_version() > LAST_WITH_KERAS2 else KERAS


def importable(names: Iterable[str]) -> list[Any]:
    """Import those of some modules that exist, and return them."""
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
