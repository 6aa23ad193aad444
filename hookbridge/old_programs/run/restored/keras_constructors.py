"""Arguments of Keras's classes that have another name today, and are taken again."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from hookbridge.contrib.private_modules import keras2_package
from hookbridge.ground import patching
from hookbridge.tf1_names.changes import changes_in
from hookbridge.tf1_names.keras_arguments import current_arguments

# The modules that have the classes, below the package of Keras 2 and in its v1 API.
_MODULES = ("layers", "models", "optimizers", "optimizers.legacy")
_V1 = "api._v1.keras"


@functools.cache
def restore() -> None:
    """Let the constructors of Keras 2 take the arguments that Keras 1 had.

    The classes stay changed until the process ends.
    """
    done: set[type] = set()
    for name, kind in _classes():
        if kind not in done:
            done.add(kind)
            patching.wrap(kind, __init__=functools.partial(_with_old_arguments, name))


def _classes() -> Iterator[tuple[str, type]]:
    """Yield the classes with a constructor of their own, by name."""
    package = keras2_package()
    for parent in (f"{package}.{_V1}", package):
        for module in _MODULES:
            try:
                keras_module = importlib.import_module(f"{parent}.{module}")
            except ModuleNotFoundError:
                continue
            for name in changes_in("keras"):
                kind = getattr(keras_module, name, None)
                if inspect.isclass(kind) and "__init__" in vars(kind):
                    yield name, kind


def _with_old_arguments(
    name: str, init: Callable[..., None], self: Any, /, *args: Any, **named: Any
) -> None:
    """Call a constructor, which takes the old arguments, too."""
    args, named = current_arguments(name, args, named)
    init(self, *args, **named)
