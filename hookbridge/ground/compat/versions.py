"""Which TensorFlow and which Keras are running."""

from __future__ import annotations

import functools
import os
import platform
import sys
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from absl import logging

from hookbridge.errors import MissingExtraError
from hookbridge.ground.imports import extras, installed

# The last TensorFlow, (major, minor), whose `tf.keras` is Keras 2 by itself.
LAST_WITH_KERAS2 = (2, 15)
# (TensorFlow, package, its first version that fails, what fails).
_TROUBLES = (
    (
        (2, 20),
        "protobuf",
        (7, 0),
        "`tf.io.write_graph`, and with it `CheckpointSaverHook`, ends in a TypeError",
    ),
)
_PACKAGES = (
    *installed.TENSORFLOWS,
    "keras",
    "keras-nightly",
    "tf_keras",
    "tf_keras-nightly",
    "tensorflow-estimator",
    "tensorboard",
    "numpy",
    "protobuf",
)


def keras_2_advice() -> str:
    """Return the way out, in messages about what Keras 3 cannot do."""
    return (
        f"`tf_keras` ({extras.install_tf_keras().strip('`')}), which is `tf.keras` as "
        "well if TF_USE_LEGACY_KERAS=1 is set before TensorFlow is imported"
    )


@functools.cache
def tf_version() -> tuple[int, int]:
    """Return the running TensorFlow's `(major, minor)`."""
    import tensorflow as tf

    return installed.major_minor(tf.__version__)


def installed_tf_version() -> tuple[int, int]:
    """Return the installed TensorFlow's `(major, minor)`.

    TensorFlow is not imported.
    """
    version = installed.tensorflow()
    if version is None:
        raise MissingExtraError(
            "TensorFlow is not installed. Install it with "
            f"{extras.install('tensorflow')}."
        )
    return version


def installed_versions() -> dict[str, str]:
    """Return `{what: version}` of the platform, Python and packages that matter.

    A package that is not installed is left out. Nothing is imported.
    """
    versions = {"platform": platform.platform(), "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def known_troubles(versions: Mapping[str, str]) -> list[str]:
    """Return what is known to fail in TensorFlow itself with these packages.

    Each text names the packages and the command that mends it. `versions` has the form
    of `installed_versions`.
    """
    name = next((name for name in installed.TENSORFLOWS if name in versions), None)
    troubles = []
    for tensorflow, package, first, trouble in _TROUBLES:
        version = versions.get(package)
        if name is None or version is None or installed.major_minor(version) < first:
            continue
        if installed.major_minor(versions[name]) == tensorflow:
            bound = f'"{package}<{first[0]}"'
            troubles.append(
                f"{name} {versions[name]} with {package} {version}: {trouble}; "
                f"correct it with `pip install {bound}`."
            )
    return troubles


@functools.cache
def tell_of_troubles() -> None:
    """Log, once in a process, the known troubles of the installed packages."""
    for trouble in known_troubles(installed_versions()):
        logging.warning("%s", trouble)


def keras_flavours() -> tuple[Any, ...]:
    """Return the Keras modules in this process: `keras` and/or `tf_keras`.

    `tf.keras` is one of them. A flavour that nobody has imported yet cannot
    have made a guest, so it is not imported here.
    """
    import tensorflow as tf

    tf.keras.callbacks.Callback  # noqa: B018 - loads the module behind `tf.keras`
    return tuple(
        module
        for name in installed.KERAS
        if (module := sys.modules.get(name)) is not None
        and hasattr(module, "callbacks")
    )


def keras3_version() -> tuple[int, int]:
    """Return the `(major, minor)` of the running Keras 3; zeros if there is none."""
    version = str(getattr(sys.modules.get("keras"), "__version__", "0.0"))
    return installed.major_minor(version) if version.startswith("3") else (0, 0)


def is_keras3(module: object) -> bool:
    """Return whether a Keras module is Keras 3."""
    return str(getattr(module, "__version__", "2")).startswith("3")


def keras_backend(module: object) -> str:
    """Return the backend of a Keras module: "tensorflow", "jax", "torch" ..."""
    backend = getattr(getattr(module, "backend", None), "backend", None)
    return str(backend()) if is_keras3(module) and callable(backend) else "tensorflow"


def other_backend() -> str:
    """Return the environment's backend for Keras 3, if it is not TensorFlow.

    It is "" if it is TensorFlow, as by default. Nothing is imported.
    """
    chosen = os.environ.get("KERAS_BACKEND", "")
    return "" if chosen == "tensorflow" else chosen
