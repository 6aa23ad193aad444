"""Looks up the names and imports of a program's own files, removed ones among them.

Other files keep their libraries as they are. `lookup_calls` writes the calls of this.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import inspect
import random
import types
from typing import Any

from hookbridge.ground.patching import MISSING
from hookbridge.legacy.removed_attributes import attribute
from hookbridge.old_programs.run.restored import (
    restored_arguments,
    restored_names,
    restored_randomness,
)
from hookbridge.old_programs.run.restored.restored_arguments import not_converted
from hookbridge.tf1_names import removed_in_libraries

_TFP = "tensorflow_probability"


class LibraryLookup:
    """Looks up names as a file of the program means them, or one of an old library.

    Args:
      takes_more: whether functions also take the arguments that they no longer take.
    """

    def __init__(self, takes_more: bool) -> None:
        self._takes_more = takes_more

    @not_converted
    def of(self, owner: object, name: str) -> Any:
        """Return `owner.name`."""
        if isinstance(owner, types.ModuleType):
            return self._of_module(owner, name)
        if self._takes_more and isinstance(owner, random.Random):
            return restored_randomness.of_generator(owner, name)
        return attribute(owner, name)

    @not_converted
    def module(self, dotted: str) -> Any:
        """Return what `import dotted as ...` binds."""
        try:
            return importlib.import_module(dotted)
        except ModuleNotFoundError as e:
            is_removed = f"{dotted}.".startswith(f"{e.name}.") and _was_there(dotted)
            restored = restored_names.module_or_value(dotted) if is_removed else MISSING
            if restored is MISSING:
                raise
            return restored

    @not_converted
    def root(self, dotted: str) -> Any:
        """Return what `import dotted` binds: the first part."""
        imported = self.module(dotted)
        root = dotted.partition(".")[0]
        return imported if root == dotted else self.module(root)

    @not_converted
    def name(self, dotted: str, name: str) -> Any:
        """Return what `from dotted import name` binds."""
        module = self.module(dotted)
        try:
            return self.of(module, name)
        except AttributeError as missing:
            try:
                return self.module(f"{dotted}.{name}")
            except ModuleNotFoundError:
                raise ImportError(
                    f"cannot import name '{name}' from '{dotted}'"
                ) from missing

    @not_converted
    def star(self, dotted: str, space: dict[str, Any], *free: str) -> None:
        """Look up `from dotted import *`.

        Args:
          dotted: the module.
          space: the variables of the file, which get the names.
          *free: the names that the file reads bare; those among them that the library
            removed are given too.
        """
        module = self.module(dotted)
        listed = vars(module).get("__all__")
        names = [n for n in vars(module) if n[:1] != "_"] if listed is None else listed
        for name in names:
            space[name] = getattr(module, name)
        for name in free:
            is_removed = (
                name not in names and f"{dotted}.{name}" in restored_names.names()
            )
            if name in names or (is_removed and not hasattr(builtins, name)):
                space[name] = self.of(module, name)

    def _of_module(self, module: types.ModuleType, name: str) -> Any:
        """Return a name of a module, also a removed one."""
        full = f"{_public_name(module)}.{name}"
        # Not `hasattr`: NumPy warns of some of these names.
        if name not in vars(module):
            if full in restored_names.names():
                value = restored_names.value(full)
                if value is not MISSING:
                    return value
            elif full in restored_names.modules():
                return self._module_below(module, name)
        value = getattr(module, name)
        is_changed = self._takes_more and full in restored_arguments.FUNCTIONS
        if is_changed and inspect.isroutine(value):
            return restored_arguments.taking_more(full, value)
        return value

    def _module_below(self, module: types.ModuleType, name: str) -> Any:
        """Return a module in a package, an imported or a removed one."""
        try:
            return getattr(module, name)
        except AttributeError:
            full = f"{module.__name__}.{name}"
            if importlib.util.find_spec(full) is not None:
                raise  # the file has not imported it
            return restored_names.module(full)


def _public_name(module: types.ModuleType) -> str:
    """Return the name by which programs know a module.

    TensorFlow Probability has its modules in a folder `python`.
    """
    return module.__name__.replace(f"{_TFP}.python.", f"{_TFP}.", 1)


def _was_there(dotted: str) -> bool:
    """Return whether a module's library is installed; Python always is."""
    root = dotted.partition(".")[0]
    row = removed_in_libraries.removed_names().get(root)
    if row is not None:
        return row.library == "Python"
    return importlib.util.find_spec(root) is not None


# A file imports one of these under the name `lookup_calls.HELPER`.
for_program = LibraryLookup(takes_more=True)
for_library = LibraryLookup(takes_more=False)
