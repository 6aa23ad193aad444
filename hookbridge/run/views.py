"""What `tensorflow` is in the program's own files.

A view is a module that wraps modules of TensorFlow and adds the names that are gone.
TensorFlow's modules stay as they are, so libraries see TensorFlow 2.
"""

from __future__ import annotations

import functools
import importlib
import os
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hookbridge.compat import tf_version
from hookbridge.run.contrib import namespace
from hookbridge.run.contrib.gone import Gone
from hookbridge.run.world import LAST_WITH_KERAS2

# Private modules of TensorFlow 1 that are gone -> where their names are today.
MOVED = {
    "tensorflow.python.estimator": "tensorflow_estimator.python.estimator",
}
# Private modules that still exist, but may use another Keras than the program's: the
# names of `tf.compat.v1.layers` come before theirs.
LAYERS = frozenset(
    f"tensorflow.python.layers.{name}"
    for name in ("base", "convolutional", "core", "layers", "normalization", "pooling")
)
# A part of a private module's name, and the module of `tf.compat.v1` whose public names
# replace those that it lost.
PUBLIC = (
    (".training.", "train"),
    ("pywrap", "train"),
    (".ops.nn", "nn"),
    (".summary", "summary"),
)
PYTHON = "tensorflow.python"
PYTHON_KERAS = "tensorflow.python.keras"
KERAS = "keras"
# Names of private modules that are something else than in TensorFlow 1: the names of
# `tf.compat.v1` replace them.
OTHERS = {"tensorflow.python.framework.device": ("DeviceSpec",)}
MNIST = "tensorflow.examples.tutorials.mnist"


class View(types.ModuleType):
    """A module with the names of several modules, and some names of its own.

    Args:
      name: its `__name__`.
      modules: where a name is looked for, in this order.
      own: names that come before all modules -> the function that makes the value.
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
        for attribute in ("__path__", "__file__", "__version__"):
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
            f"module '{self.__name__}' has no attribute '{name}'; TensorFlow lost it, "
            "and `hookbridge run` knows nothing that stands for it"
        )

    def __dir__(self) -> list[str]:
        names = {name for module in self._view_modules for name in dir(module)}
        return sorted({*names, *self._view_own, *self.__dict__} - {"__all__"})


def is_gone(found: Any) -> bool:
    """Whether the found object is a `Gone`: the name exists no more."""
    return isinstance(found, Gone)


def device(name_or_function: Any) -> Any:
    """`tf.device` of TensorFlow 2 that also takes functions."""
    import tensorflow as tf

    if callable(name_or_function):
        return tf.compat.v1.device(name_or_function)
    return tf.device(name_or_function)


@functools.cache
def tensorflow(old: bool) -> View:
    """What `tensorflow` is in a file.

    Args:
      old: whether it means TensorFlow 1.
    """
    import tensorflow as tf

    v1 = tf.compat.v1
    if old:
        return View("tensorflow", (v1, tf), _shared())
    own = _shared()
    own["device"] = lambda: device
    for name in ("train", "summary", "nn", "metrics", "losses", "saved_model", "data"):
        both = (getattr(tf, name), getattr(v1, name))
        own[name] = functools.partial(View, f"tensorflow.{name}", both)
    return View("tensorflow", (tf, v1), own)


def _shared() -> dict[str, Callable[[], Any]]:
    """The names that both views add to TensorFlow's."""
    own: dict[str, Callable[[], Any]] = {
        "contrib": namespace.root,
        "examples": _examples,
        "pywrap_tensorflow": functools.partial(_private, f"{PYTHON}.pywrap_tensorflow"),
    }
    for name in ("core", "python"):
        own[name] = functools.partial(importlib.import_module, f"tensorflow.{name}")
    return own


def _examples() -> View:
    """`tensorflow.examples`, with nothing but the reader of MNIST in it."""
    from hookbridge.run.contrib.areas import mnist

    *above, last = MNIST.split(".")
    found = View(MNIST, (mnist,), {"input_data": lambda: mnist})
    while len(above) > 1:
        name = ".".join(above)
        inner = {last: functools.partial(lambda value: value, found)}
        found, last = View(name, (types.ModuleType(name),), inner), above.pop()
    return found


def find(old: bool, dotted: str) -> Any:
    """The object that a dotted name of TensorFlow or Keras stands for.

    Args:
      old: whether the file means TensorFlow 1.
      dotted: begins with `tensorflow` or `keras`.

    Raises:
      ImportError: there is nothing of that name.
    """
    if dotted.partition(".")[0] == KERAS:
        return importlib.import_module(_keras2() + dotted[len(KERAS) :])
    if dotted == PYTHON_KERAS or dotted.startswith(f"{PYTHON_KERAS}."):
        return _private_keras(dotted)
    if dotted.startswith(f"{PYTHON}."):
        return _private(dotted)
    if dotted == PYTHON:
        return importlib.import_module(dotted)
    found: Any = tensorflow(old)
    place = "tensorflow"
    for part in dotted.split(".")[1:]:
        place = f"{place}.{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(place)
    return found


@functools.cache
def _private(dotted: str) -> Any:
    """A private module; public names replace those that it lost.

    Many functions have moved to another private module since TensorFlow 1. Most of
    them are also public, under the same name.
    """
    v1 = importlib.import_module("tensorflow").compat.v1
    try:
        real = importlib.import_module(dotted)
    except ModuleNotFoundError:
        for prefix, place in MOVED.items():
            if dotted == prefix or dotted.startswith(f"{prefix}."):
                return importlib.import_module(place + dotted[len(prefix) :])
        raise
    if hasattr(real, "__path__"):
        return real  # a package holds only modules
    if dotted in LAYERS:
        return View(dotted, (v1.layers, real))
    public = [getattr(v1, name) for part, name in PUBLIC if part in dotted]
    own = {
        name: functools.partial(getattr, v1, name) for name in OTHERS.get(dotted, ())
    }
    return View(dotted, (real, *public, v1), own)


def _keras2() -> str:
    """The package that `keras` means: tf_keras where `tf.keras` is tf_keras."""
    is_legacy = os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true")
    return "tf_keras" if is_legacy and tf_version() > LAST_WITH_KERAS2 else KERAS


@functools.cache
def _private_keras(dotted: str) -> Any:
    """A module of `tensorflow.python.keras`, taken from the Keras of `tf.keras`.

    TensorFlow keeps an old copy of Keras there, whose classes do not fit `tf.keras`.
    """
    package, rest = _keras2(), dotted[len(PYTHON_KERAS) :]
    if package == KERAS and tf_version() > LAST_WITH_KERAS2:
        return importlib.import_module(dotted)  # `tf.keras` is Keras 3
    found = []
    for name in (f"{package}.src{rest}", f"{package}{rest}", dotted):
        try:
            found.append(importlib.import_module(name))
        except ModuleNotFoundError:
            continue
    if not found:
        raise ModuleNotFoundError(f"No module named '{dotted}'", name=dotted)
    return View(dotted, found)
