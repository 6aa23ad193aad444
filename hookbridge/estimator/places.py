"""`tf.estimator` back in its old place, for code that looks for it there."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

from hookbridge.estimator import restored_package
from hookbridge.ground import compat
from hookbridge.tf1_names.private_names import OF_TPU

# Each module that has `estimator` in TensorFlow 2.15 -> which of the two namespaces.
PLACES: dict[str, str] = {
    "tensorflow": "v2",
    "tensorflow.compat.v1": "v1",
    "tensorflow.compat.v2": "v2",
    # For programs that import `tensorflow.compat.v2 as tf` and use `tf.compat.v1`.
    "tensorflow.compat.v1.compat.v1": "v1",
    "tensorflow.compat.v1.compat.v2": "v2",
    "tensorflow.compat.v2.compat.v1": "v1",
    "tensorflow.compat.v2.compat.v2": "v2",
}


def install() -> None:
    """Put `tf.estimator` and `tf.compat.v1.estimator` back.

    This is for unmodified TF1 code and libraries. After the call,
    `tf.estimator.Estimator`, `tf.estimator.SessionRunHook`,
    `import tensorflow.compat.v1 as tf; tf.estimator.inputs` and
    `from tensorflow.estimator import RunConfig` work as on 2.15. Call it before you
    import such code. It changes nothing on TensorFlow 2.15, or when it is called again.

    Raises:
      errors.MissingExtraError: tensorflow-estimator or tf_keras is missing.
      errors.ImportOrderError: something else imported the package before.
      compat.PrivateNameMovedError: this TensorFlow lacks private names that the
        package needs.
    """
    namespaces = restored_package.namespaces()
    if compat.tf_version() <= restored_package.LAST_WITH_ESTIMATOR:
        return
    for parent, version in PLACES.items():
        namespace = getattr(namespaces, version)
        _parent(parent).estimator = namespace
        _register(f"{parent}.estimator", namespace)
    for name in OF_TPU:
        module = importlib.import_module(
            f"tensorflow_estimator.python.estimator.tpu.{name}"
        )
        sys.modules[f"tensorflow.python.tpu.{name}"] = module


def _parent(place: str) -> Any:
    import tensorflow as tf

    parent: Any = tf
    for part in place.split(".")[1:]:
        parent = getattr(parent, part)
    return parent


def _register(name: str, namespace: types.ModuleType) -> None:
    """Let `import` statements find the namespace and its submodules."""
    sys.modules[name] = namespace
    for attribute, value in list(vars(namespace).items()):
        if isinstance(value, types.ModuleType) and value.__name__.startswith(
            f"{namespace.__name__}."
        ):
            sys.modules[f"{name}.{attribute}"] = value
