"""Imports the real tensorflow-estimator on a TensorFlow that dropped it."""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import importlib.metadata
import importlib.util
import sys
import types
from collections.abc import Sequence
from typing import Any, NamedTuple

from hookbridge import errors
from hookbridge.estimator import feeding_threads, needs, stand_ins, view
from hookbridge.ground import compat
from hookbridge.ground.imports import extras

PACKAGE = "tensorflow_estimator"
LAST_WITH_ESTIMATOR = (2, 15)


class Namespaces(NamedTuple):
    """What `tf.compat.v1.estimator` and `tf.estimator` are."""

    v1: Any
    v2: Any


class ViewLoader(importlib.machinery.SourceFileLoader):
    """Runs a module of the package with the package's view of TensorFlow."""

    def exec_module(self, module: types.ModuleType) -> None:
        """Execute the module; Python keeps a `__builtins__` that is already set."""
        vars(module)["__builtins__"] = view.view_builtins()
        super().exec_module(module)


class PackageFinder:
    """Finds the modules of the package, and no others, for `ViewLoader`."""

    @staticmethod
    def find_spec(
        name: str,
        path: Sequence[str] | None = None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder.find_spec`."""
        if name.partition(".")[0] != PACKAGE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is (
            importlib.machinery.SourceFileLoader
        ):
            spec.loader = ViewLoader(spec.loader.name, spec.loader.path)
        return spec


@functools.cache
def namespaces() -> Namespaces:
    """Return `tf.estimator` and `tf.compat.v1.estimator` of this TensorFlow.

    On 2.15 they are TensorFlow's own. From 2.16 on they are those of the package, which
    is imported with its view of TensorFlow.
    """
    import tensorflow as tf

    if compat.tf_version() <= LAST_WITH_ESTIMATOR:
        of_tensorflow = Namespaces(v1=tf.compat.v1.estimator, v2=tf.estimator)
        feeding_threads.end_before_the_process()
        return of_tensorflow
    _check_not_imported()
    _check_installed()
    needs.check()
    if not any(finder is PackageFinder for finder in sys.meta_path):
        sys.meta_path.insert(0, PackageFinder)
    try:
        restored = Namespaces(
            *(
                importlib.import_module(
                    f"{PACKAGE}.python.estimator.api._{v}.estimator"
                )
                for v in ("v1", "v2")
            )
        )
        feeding_threads.end_before_the_process()
        return restored
    except compat.PrivateNameMovedError:
        _forget()
        raise
    except (ImportError, AttributeError) as e:
        _forget()
        raise compat.PrivateNameMovedError(stand_ins.moved_message(str(e))) from e


def _check_installed() -> None:
    """Refuse an environment without the last Estimator package."""
    version = ".".join(map(str, compat.tf_version()))
    extras.check(
        PACKAGE,
        "tf_keras",
        user=f"`hb.estimator` on TensorFlow {version}",
        way_out="TensorFlow 2.15 has Estimator built in.",
    )
    installed = importlib.metadata.version("tensorflow-estimator")
    if not installed.startswith("2.15."):
        raise errors.MissingExtraError(
            f"`hb.estimator` found tensorflow-estimator {installed}; expected 2.15.0, "
            f"the last release. Install it with {extras.install('estimator')}."
        )


def _loaded_modules() -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] == PACKAGE]


def _forget() -> None:
    """Drop the package's modules, so that the next import starts afresh."""
    for name in _loaded_modules():
        del sys.modules[name]


def _check_not_imported() -> None:
    """Make sure that no module of the package runs without the view."""
    root = sys.modules.get(PACKAGE)
    if root is None:
        # A failed import leaves submodules without their root.
        _forget()
        return
    spec = vars(root).get("__spec__")
    if not isinstance(getattr(spec, "loader", None), ViewLoader):
        raise errors.ImportOrderError(
            "Something imported `tensorflow_estimator` before `hookbridge.estimator`, "
            "so its modules hold on to names of TensorFlow that this version lacks, "
            "or to a Keras that they cannot use. Import and use "
            "`hookbridge.estimator` first: `import hookbridge as hb; "
            "hb.estimator.install()` at the top of the program."
        )
