"""Which names of TensorFlow a module has from `from module import *`."""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import sys
from collections.abc import Callable
from typing import TypeAlias

from hookbridge.old_programs.reading.names.bound_names import Given, Names
from hookbridge.old_programs.reading.names.import_statements import canonical
from hookbridge.old_programs.reading.names.scopes import Scopes
from hookbridge.tf1_names import contrib_names, installed_names
from hookbridge.tf1_names.old_keras import KERAS, was_there
from hookbridge.tf1_names.removed_in_libraries import (
    removed_names,
    removed_part,
    roots,
)
from hookbridge.tf1_names.resolution import resolve
from hookbridge.tf1_names.target import NEWEST, Target, had_in_tf1, table

_Test: TypeAlias = Callable[[str, str], bool]
_ROOTS = ("tensorflow", "tensorflow_estimator")
PLACES = frozenset({"site-packages", "dist-packages"})
_BUILTINS = frozenset(dir(builtins))


def is_followed(module: str) -> bool:
    """Return whether a module is of TensorFlow, or of a library with removed names."""
    root = module.partition(".")[0]
    return root in _ROOTS or root in roots()


def free_names(tree: ast.Module) -> frozenset[str]:
    """Return the names that starred imports may give to a file; none if it has none."""
    scopes = Scopes(tree)
    return scopes.free - _BUILTINS if scopes.starred else frozenset()


def follow(names: Names) -> None:
    """Note the names that a module has from its starred imports of TensorFlow.

    The starred modules of its own program give names, too, once they are known.
    """
    if not names.scopes.starred:
        return
    free = names.scopes.free - _BUILTINS
    for name in free & set(names.given):
        del names.given[name], names.bound[name]
    for name in free - set(names.bound):
        if (from_star := giver(names, name)) is not None:
            names.given[name] = from_star
            names.bound[name] = from_star.dotted


def giver(names: Names, name: str) -> Given | None:
    """Return where a name that a module does not bind itself comes from."""
    if name.startswith("_"):
        return None
    # A private module mostly has a public name for its own use.
    for test in (_gives_publicly, gives, may_give):
        gift = _given_by_stars(names, name, test, [])
        if isinstance(gift, Given):
            return None if _is_doubtful(names, name, gift) else gift
        if gift:  # it is not a name of TensorFlow
            return None
    return None


def _given_by_stars(
    names: Names, name: str, test: _Test, earlier: list[Names]
) -> Given | bool:
    """Return what the starred imports of a module give a name; the last one counts.

    True if one of them gives something else, False if none gives anything.
    """
    earlier.append(names)
    for module in reversed(names.scopes.starred):
        own_names = names.by_module.get(module)
        if own_names is not None:
            if own_names in earlier:
                continue  # it gives nothing, or is looked at already
            if own_names.scopes.module.has(name):
                return True
            gift = _given_by_stars(own_names, name, test, earlier)
            if gift:
                return gift._replace(star="") if isinstance(gift, Given) else True
        elif is_followed(module) and test(module, name):
            return Given(f"{module}.{name}", module)
        elif _library_gives(module, name):
            return True
    return False


def _is_doubtful(names: Names, name: str, given: Given) -> bool:
    """Return whether another star gives the name, if this one fails: both are tried."""
    tried = names.scopes.tried
    return given.star in tried and any(
        module != given.star and is_followed(module) and gives(module, name)
        for module in tried
    )


@functools.cache
def gives(module: str, name: str) -> bool:
    """Return whether a star of a module certainly gives a name, or gave it once.

    What TensorFlow 1.15 gave counts, what its newest successor gives, and names of
    before 1.0 whose current name is known; of other libraries, what they removed.
    """
    full, target = canonical(f"{module}.{name}"), Target(NEWEST)
    if module.partition(".")[0] == KERAS:
        return was_there(full)
    if module.partition(".")[0] not in _ROOTS:
        return removed_part(full) == full and not removed_names()[full].is_method
    if full.startswith("tf.contrib."):
        inside = full.removeprefix("tf.contrib.")
        if ".python." in f".{inside}":
            return contrib_names.is_available(full) and not name.islower()
        return had_in_tf1(full)
    if full.startswith("tf."):
        hints = table("names")["hints"]
        short = full.replace("tf.compat.v1.", "tf.", 1)
        return had_in_tf1(full) or target.has(full) or short in hints
    if full.startswith("tensorflow.python.keras"):
        return had_in_tf1(full.replace("tensorflow.python", "tf", 1))
    absent, _, is_certain = installed_names.missing_private(full, target)
    return is_certain and not absent


def _gives_publicly(module: str, name: str) -> bool:
    return not module.startswith("tensorflow.python.") and gives(module, name)


def may_give(module: str, name: str) -> bool:
    """Return whether `run` provides a name that was removed from a private module."""
    if gives(module, name) or module.partition(".")[0] not in _ROOTS:
        return gives(module, name)
    full = canonical(f"{module}.{name}")
    outcome = None if full.startswith("tf.") else resolve(full, Target(NEWEST))
    return outcome is not None and outcome.replacement.rpartition(".")[2] == name


def _is_installed(root: str) -> bool:
    """Return whether a package is a library, and not in the folder of the program."""
    if root in sys.stdlib_module_names:
        return True
    path = installed_names.package(root)
    return path is not None and bool(PLACES & set(path.parts))


@functools.cache
def _library_gives(module: str, name: str) -> bool:
    """Return whether an installed module of another library certainly has a name."""
    root = module.partition(".")[0]
    if root in _ROOTS or not _is_installed(root):
        return False
    if root in sys.stdlib_module_names and installed_names.package(root) is None:
        # `math` and its like are not written in Python, and do nothing when imported.
        return hasattr(importlib.import_module(root), name)
    return installed_names.certainly_has(module, name)
