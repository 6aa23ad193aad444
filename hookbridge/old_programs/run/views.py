"""What `tensorflow` is in the program's own files.

A view is a module that wraps modules of TensorFlow and adds the removed names.
TensorFlow's modules stay as they are, so libraries see TensorFlow 2.
"""

from __future__ import annotations

import functools
import importlib
import types
from collections.abc import Callable
from typing import Any

from hookbridge.contrib import keras_package, namespace, private_modules
from hookbridge.contrib.module_views import PrivateView, View
from hookbridge.contrib.private_modules import KERAS, PYTHON
from hookbridge.old_programs.reading.names.conditions import UNDER_RUN

# What a file of TensorFlow 1 reads as the version of `tf.keras`.
KERAS_VERSION = f"{keras_package.VERSION}-tf"


def device(name_or_function: object) -> Any:
    """`tf.device` of TensorFlow 2 that also takes functions."""
    import tensorflow as tf

    if callable(name_or_function):
        return tf.compat.v1.device(name_or_function)
    return tf.device(name_or_function)


@functools.cache
def tensorflow(targets_tf1: bool) -> View:
    """Return what `tensorflow` is in a file."""
    import tensorflow as tf

    v1 = tf.compat.v1
    if targets_tf1:
        version = View(
            "tensorflow.version", (v1.version,), {"VERSION": lambda: UNDER_RUN}
        )
        added: dict[str, Callable[[], Any]] = {
            **_shared_names(),
            "__version__": lambda: UNDER_RUN,
            "VERSION": lambda: UNDER_RUN,
            "keras": lambda: _keras(v1.keras, lambda: KERAS_VERSION),
            "version": lambda: version,
        }
        return View("tensorflow", (v1, tf), added)
    added = _shared_names()
    added["keras"] = lambda: _keras(tf.keras, _version_of_keras2)
    added["device"] = lambda: device
    for name in ("train", "summary", "nn", "metrics", "losses", "saved_model", "data"):
        both = (getattr(tf, name), getattr(v1, name))
        added[name] = functools.partial(View, f"tensorflow.{name}", both)
    return View("tensorflow", (tf, v1), added)


def _keras(module: object, version: Callable[[], str]) -> Any:
    """Return `tf.keras` with a `__version__`, which Keras 2 lacks there."""
    try:
        has_version = hasattr(module, "__version__")
    except ImportError:  # Keras is not installed: its names say so
        return module
    if has_version:
        return module
    return View(f"tensorflow.{KERAS}", (module,), {"__version__": version})


def _version_of_keras2() -> str:
    return str(importlib.import_module(private_modules.keras2_package()).__version__)


def _shared_names() -> dict[str, Callable[[], Any]]:
    """Return the names that all views add to those of TensorFlow."""
    return {
        "compat": _compat,
        "contrib": namespace.root,
        "examples": _examples,
        "pywrap_tensorflow": functools.partial(
            private_modules.find, f"{PYTHON}.pywrap_tensorflow"
        ),
        "core": functools.partial(importlib.import_module, "tensorflow.core"),
        "python": functools.partial(private_modules.Package, PYTHON),
    }


def _compat() -> View:
    import tensorflow as tf

    return View("tensorflow.compat", (tf.compat,), {"v1": compat_v1})


@functools.cache
def compat_v1() -> View:
    """Return what `tensorflow.compat.v1` is in a file.

    Programs that a person has begun to upgrade look for `tf.contrib` in it.
    """
    import tensorflow as tf

    return PrivateView("tensorflow.compat.v1", (tf.compat.v1,), _shared_names())


def _examples() -> Any:
    """Return `tensorflow.examples`, with nothing but the reader of MNIST in it."""
    from hookbridge.contrib.areas import mnist

    package: Any = mnist
    for name in ("input_data", "mnist", "tutorials"):
        package = types.SimpleNamespace(**{name: package})
    return package


def find(targets_tf1: bool, dotted: str) -> Any:
    """Return the object that a dotted name of TensorFlow or Keras means."""
    if dotted.partition(".")[0] == KERAS:
        return keras_package.find(dotted, targets_tf1)
    if dotted == PYTHON or dotted.startswith(f"{PYTHON}."):
        return private_modules.find(dotted)
    value: Any = tensorflow(targets_tf1)
    module = "tensorflow"
    for part in dotted.split(".")[1:]:
        module = f"{module}.{part}"
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(module)
    return value
