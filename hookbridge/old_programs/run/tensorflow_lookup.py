"""Looks up what the import statements of a program's own files mean.

AutoGraph runs these functions as they are: a function that it converts may import.
"""

from __future__ import annotations

import inspect
from typing import Any

import tensorflow as tf

from hookbridge.contrib.private_modules import PYTHON
from hookbridge.contrib.without_replacement import Removed
from hookbridge.old_programs.reading.names import starred
from hookbridge.old_programs.reading.names.import_statements import canonical
from hookbridge.old_programs.run import stars, views
from hookbridge.old_programs.run.restored.restored_arguments import not_converted
from hookbridge.tf1_names.resolution import resolve
from hookbridge.tf1_names.syntax import is_below
from hookbridge.tf1_names.target import NEWEST, Target


class TensorFlowLookup:
    """Looks up the imports of one file, in the TensorFlow that it means.

    With `strict`, importing a removed name raises `ImportError`, for imports whose
    error the file catches: it has another way then. Otherwise the name raises when it
    is used.
    """

    def __init__(self, targets_tf1: bool, strict: bool = False) -> None:
        self._targets_tf1, self._is_strict = targets_tf1, strict

    @property
    def strict(self) -> TensorFlowLookup:
        """The strict form, for imports whose `ImportError` the file catches."""
        return TensorFlowLookup(self._targets_tf1, strict=True)

    @not_converted
    def module(self, dotted: str) -> Any:
        """Return what `import dotted as ...` binds."""
        try:
            return self._raise_if_strict(views.find(self._targets_tf1, dotted), dotted)
        except ModuleNotFoundError:
            if self._is_removed(dotted):
                return Removed(canonical(dotted))
            raise

    @not_converted
    def root(self, dotted: str) -> Any:
        """Return what `import dotted` binds: the first part."""
        self.module(dotted)
        return views.find(self._targets_tf1, dotted.partition(".")[0])

    @not_converted
    def name(self, dotted: str, name: str) -> Any:
        """Return what `from dotted import name` binds."""
        module = self.module(dotted)
        try:
            value = self._raise_if_strict(getattr(module, name), f"{dotted}.{name}")
            # A private module may have another one only because it imports it.
            is_private = dotted.startswith(PYTHON) and inspect.ismodule(value)
            if is_private and is_below(value.__name__, PYTHON):
                return views.find(self._targets_tf1, value.__name__)
            return value
        except AttributeError as missing:
            try:
                return views.find(self._targets_tf1, f"{dotted}.{name}")
            except ImportError:
                if self._is_removed(f"{dotted}.{name}"):
                    return Removed(canonical(f"{dotted}.{name}"))
                raise ImportError(
                    f"cannot import name '{name}' from '{dotted}'"
                ) from missing

    def _is_removed(self, dotted: str) -> bool:
        """Return whether an absent name can be imported, and raises when used.

        The same goes for private names, and for all without a replacement.
        """
        if self._is_strict:
            return False
        outcome = resolve(canonical(dotted), Target(NEWEST))
        return is_below(dotted, PYTHON) or (
            outcome is not None and not outcome.replacement
        )

    def _raise_if_strict(self, value: object, dotted: str) -> Any:
        if self._is_strict and isinstance(value, Removed):
            raise ModuleNotFoundError(f"No module named '{dotted}'", name=dotted)
        return value

    @not_converted
    def or_raise_if_removed(self, value: object) -> Any:
        """Return a value that a file reads in a `try`; raise for a removed name."""
        if isinstance(value, Removed):
            raise AttributeError(f"TensorFlow removed this name: {value!r}")
        return value

    @not_converted
    def has(self, value: object, name: str) -> bool:
        """Return `hasattr(value, name)` of a program that can do without the name."""
        if value is views.compat_v1():
            value = tf.compat.v1  # what is added to it was not there in TensorFlow 1.15
        if not hasattr(value, name):
            return False
        is_module = inspect.ismodule(value) or isinstance(value, Removed)
        return not (is_module and isinstance(getattr(value, name), Removed))

    @not_converted
    def star(self, dotted: str, namespace: dict[str, Any], *free: str) -> None:
        """Look up `from dotted import *`.

        Args:
          dotted: the module.
          namespace: the variables of the file, which get the names.
          *free: the names that the file reads bare. They are given, too, if the module
            has them and does not list them.
        """
        module = self.module(dotted)
        for name in stars.star_names(self._targets_tf1, dotted, module):
            try:
                namespace[name] = getattr(module, name)
            except AttributeError:
                continue
            except Exception:
                # What the name needs may not be installed.
                if name in free:
                    raise
        for name in set(free) - namespace.keys():
            if starred.may_give(dotted, name) and hasattr(module, name):
                namespace[name] = getattr(module, name)


# Each rewritten file imports one of these under the name `statements.HELPER`.
for_tf1: TensorFlowLookup = TensorFlowLookup(targets_tf1=True)
for_tf2: TensorFlowLookup = TensorFlowLookup(targets_tf1=False)
