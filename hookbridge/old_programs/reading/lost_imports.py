"""Imports of names that an installed library certainly lacks."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from collections.abc import Iterator

from hookbridge.old_programs.names import installed_names
from hookbridge.old_programs.names.lost_in_libraries import (
    is_there,
    lost_names,
    lost_part,
)
from hookbridge.old_programs.reading.evidence import TENSORFLOW
from hookbridge.old_programs.reading.import_statements import Import, imports
from hookbridge.old_programs.reading.modules import Module
from hookbridge.old_programs.reading.programs import Programs

# Names of these packages are handled elsewhere: by `scan`, and by `run` itself.
_OTHERS = frozenset({*TENSORFLOW, "distutils"})


def lost_imports(module: Module, programs: Programs) -> Iterator[Import]:
    """The imports of a file that fail, and are not expected to."""
    return filter(_is_lost, _of_libraries(module, programs))


def unused_lost_imports(module: Module, programs: Programs) -> frozenset[str]:
    """The names among them that nothing uses: the program runs without them."""
    return frozenset(
        one.full
        for one in _of_libraries(module, programs)
        if programs.is_unused(module, one.bound) and _is_lost(one)
    )


def unused_absent_imports(module: Module, programs: Programs) -> Iterator[Import]:
    """The imports of packages that are not installed, and of which nothing is used."""
    for one in _of_libraries(module, programs):
        is_unused = programs.is_unused(module, one.bound)
        if is_unused and is_absent(one.full, module, programs):
            yield one


def is_absent(name: str, module: Module, programs: Programs) -> bool:
    """Whether a module is neither installed nor in the folders of its program."""
    root = name.partition(".")[0]
    if root in sys.modules or lost_part(root):
        return False
    for folder in programs.roots(module):
        if any(os.path.exists(os.path.join(folder, root + end)) for end in ("", ".py")):
            return False
    return importlib.util.find_spec(root) is None


def _of_libraries(module: Module, programs: Programs) -> Iterator[Import]:
    own = programs.place(module).own
    for node in module.nodes:
        for one in imports(node) if id(node) not in module.guarded else ():
            root = one.full.partition(".")[0]
            is_own = any(f"{n}.".startswith(f"{root}.") for n in own)
            if not root or is_own or root in _OTHERS or one.bound == "*":
                continue
            yield one


def _is_lost(one: Import) -> bool:
    if part := lost_part(one.full):
        row = lost_names()[part]
        return not (row.living or row.is_given_back or is_there(part))
    num_modules = one.full.count(".") + isinstance(one.node, ast.Import)
    return bool(installed_names.missing(one.full, num_modules).rest)
