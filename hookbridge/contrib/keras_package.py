"""Keras as a package of its own, as it was until 2.3: what `import keras` gives.

TensorFlow 1 had the same Keras as `tf.keras`, so that `tf.compat.v1.keras` answers.
What was never public there is found in the private modules of Keras 2.
"""

from __future__ import annotations

import functools
import importlib
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hookbridge.contrib.module_views import View
from hookbridge.contrib.private_modules import KERAS, importable, keras2_package
from hookbridge.ground.compat import LAST_WITH_KERAS2, tf_version
from hookbridge.ground.imports.lazy_modules import made
from hookbridge.tf1_names import old_keras

# What a program of TensorFlow 1 reads as the version: that of the API which it finds.
VERSION = "2.2.4"
_OPTIMIZER = "Optimizer"
_BACKENDS = (f"{KERAS}.backend", f"{KERAS}.backend.tensorflow_backend")


class _Keras(View):
    """A module of Keras, whose modules are found as it was."""

    def __init__(
        self,
        name: str,
        modules: Sequence[Any],
        overrides: Mapping[str, Callable[[], Any]],
        of_tf1: bool,
    ) -> None:
        super().__init__(name, modules, overrides)
        made(self)["_of_tf1"] = of_tf1

    def __getattr__(self, name: str) -> Any:
        is_known = not name.startswith("__")
        try:
            value = super().__getattr__(name)
        except AttributeError:
            if not is_known:
                raise
            return self._below(name)
        if isinstance(value, types.ModuleType) and is_known:
            is_of_keras = value.__name__.partition(".")[0] in (KERAS, "tf_keras")
            return self._below(name) if is_of_keras else value
        return value

    def _below(self, name: str) -> Any:
        """Return a module inside of this one."""
        try:
            value = find(f"{self.__name__}.{name}", self._of_tf1)
        except ModuleNotFoundError:
            raise AttributeError(
                f"module '{self.__name__}' has no attribute '{name}'; Keras 2 "
                "removed it, and `hookbridge run` has no replacement for it"
            ) from None
        made(self)[name] = value
        return value


@functools.cache
def find(dotted: str, of_tf1: bool) -> Any:
    """Return the module that a name of `keras` means.

    Args:
      dotted: the name of a module: `keras.layers.core`.
      of_tf1: whether the file that imports it means TensorFlow 1.

    Raises:
      ModuleNotFoundError: no module of Keras 2 has what it had.
    """
    package = keras2_package()
    if package == KERAS and tf_version() > LAST_WITH_KERAS2:
        return importlib.import_module(dotted)  # Keras 3
    modules = importable(old_keras.places(dotted, package, of_tf1))
    own_names = _overrides(dotted, of_tf1)
    if not (modules or own_names):
        above, _, name = dotted.rpartition(".")
        if name in old_keras.own_names(above):  # a module of ours
            return _resolve_name(old_keras.own_names(above)[name], of_tf1)
        raise ModuleNotFoundError(f"No module named '{dotted}'", name=dotted)
    return _Keras(dotted, modules or [types.ModuleType(dotted)], own_names, of_tf1)


def _overrides(dotted: str, of_tf1: bool) -> dict[str, Callable[[], Any]]:
    """Return the names of a module that are found elsewhere."""
    makers: dict[str, Callable[[], Any]] = {
        name: functools.partial(_resolve_name, replacement, of_tf1)
        for name, replacement in old_keras.own_names(dotted).items()
    }
    if dotted == KERAS and of_tf1:
        makers["__version__"] = lambda: VERSION
    if f"{dotted}.{_OPTIMIZER}" == old_keras.OPTIMIZER and of_tf1:
        module = f"{keras2_package()}.src.optimizers.optimizer_v1"
        makers[_OPTIMIZER] = functools.partial(
            _resolve_name, f"{module}.{_OPTIMIZER}", of_tf1
        )
    if dotted in _BACKENDS:
        makers["tf"] = lambda: importlib.import_module("tensorflow").compat.v1
    return makers


def _resolve_name(replacement: str, of_tf1: bool) -> Any:
    """Return a name in its current place, of Keras or of ours."""
    module, _, name = replacement.rpartition(".")
    is_of_keras = module.partition(".")[0] == KERAS
    owner = find(module, of_tf1) if is_of_keras else importlib.import_module(module)
    return getattr(owner, name)
