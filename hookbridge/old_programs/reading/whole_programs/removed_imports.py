"""Imports of names that an installed library certainly lacks."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

from hookbridge.old_programs.reading.names.import_statements import (
    Import,
    all_imports,
)
from hookbridge.old_programs.reading.one_file.evidence import TENSORFLOW
from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.old_programs.reading.whole_programs.programs import Programs
from hookbridge.tf1_names.installed_names import missing, missing_below
from hookbridge.tf1_names.removed_in_libraries import (
    is_there,
    removed_names,
    removed_part,
)
from hookbridge.tf1_names.syntax import is_below

# Names of these packages are handled elsewhere: by `scan`, and by `run` itself.
_OTHERS = frozenset({*TENSORFLOW, "distutils"})


def removed_imports(module: Module, programs: Programs) -> Iterator[Import]:
    """Return the imports of a file that fail, and are not expected to.

    Args:
      module: the file.
      programs: the programs that it is part of, in whose folders modules may be.
    """
    return filter(_is_removed, _of_libraries(module, programs))


def unused_removed_imports(module: Module, programs: Programs) -> frozenset[str]:
    """Return the full names of `removed_imports` that nothing uses.

    The program runs without them.

    Args:
      module: the file.
      programs: the programs that it is part of, whose files may use the names.
    """
    removed = removed_imports(module, programs)
    return frozenset(programs.names.unused_names(module, removed))


def unused_absent_imports(module: Module, programs: Programs) -> Iterator[Import]:
    """Yield the imports of which nothing is used, and whose package is absent.

    Args:
      module: the file.
      programs: the programs that it is part of, whose files may use the names.
    """
    unused = programs.names.unused_names(module, _of_libraries(module, programs))
    for imported in _of_libraries(module, programs):
        if imported.full in unused and is_absent(imported.full, module, programs):
            yield imported


def is_absent(name: str, module: Module, programs: Programs) -> bool:
    """Return whether a module is neither installed nor in its program's folders.

    Args:
      name: the dotted name of the module, or of something in it.
      module: the file that imports it.
      programs: the programs that the file is part of.
    """
    root = name.partition(".")[0]
    if root in sys.modules or removed_part(root):
        return False
    for folder in programs.roots(module):
        if any(os.path.exists(os.path.join(folder, root + end)) for end in ("", ".py")):
            return False
    spec = importlib.util.find_spec(root)
    return spec is None or _is_found_by_chance(spec)


def _is_found_by_chance(spec: ModuleSpec) -> bool:
    """Return whether only `python -m hookbridge` in its folder finds a module.

    Python looks in the working directory then. It does not when the program runs.
    """
    here = os.path.realpath(os.getcwd())
    places = [*(spec.submodule_search_locations or ()), spec.origin or ""]
    is_here = any(os.path.dirname(os.path.realpath(p)) == here for p in places if p)
    return is_here and here not in map(os.path.realpath, sys.path[1:])


def missing_modules(module: Module, programs: Programs) -> Iterator[str]:
    """Yield what a file imports from packages of its program that no file is there for.

    A module in another language than Python may have to be built first.

    Args:
      module: the file.
      programs: the programs that it is part of, whose folders have the packages.
    """
    for imported in all_imports(module.unguarded):
        parts = [part for part in imported.full.split(".") if part not in ("", "*")]
        has_name = isinstance(imported.node, ast.ImportFrom)
        num_modules = len(parts) - 1 if has_name else len(parts)
        if level := getattr(imported.node, "level", 0):
            up = Path(os.path.dirname(module.path), *[".."] * (level - 1))
            above, places = imported.full[:level], [up]
        else:
            package, *parts = parts
            num_modules -= 1
            above = f"{package}."
            places = _own_packages(package, module, programs)
        lacks = [missing_below(folder, parts, num_modules) for folder in places]
        if lacks and all(lack.rest and not lack.in_module for lack in lacks):
            is_there = len(parts) - len(lacks[0].rest.split("."))
            yield above + ".".join(parts[: is_there + 1])


def _own_packages(root: str, module: Module, programs: Programs) -> list[Path]:
    """Return a package's folders in the program; None if it may be an installed one.

    The working directory may be the program's folder, where Python looks, too.
    """
    if root in _OTHERS or root in sys.modules:
        return []
    candidates = [Path(folder, root) for folder in programs.roots(module)]
    packages = [folder.resolve() for folder in candidates if folder.is_dir()]
    spec = importlib.util.find_spec(root) if packages else None
    places = [] if spec is None else spec.submodule_search_locations or [""]
    is_other = any(Path(location).resolve() not in packages for location in places)
    is_file = any(folder.with_suffix(".py").is_file() for folder in candidates)
    return [] if is_other or is_file else packages


def _of_libraries(module: Module, programs: Programs) -> Iterator[Import]:
    own_modules = programs.in_program(module).own_modules
    for imported in all_imports(module.unguarded):
        root = imported.full.partition(".")[0]
        is_own = any(is_below(n, root) for n in own_modules)
        if root and not is_own and root not in _OTHERS and imported.bound != "*":
            yield imported


def _is_removed(imported: Import) -> bool:
    if part := removed_part(imported.full):
        row = removed_names()[part]
        return not (row.replacement or row.is_restored or is_there(part))
    num_parts = imported.full.count(".") + 1
    num_modules = num_parts if isinstance(imported.node, ast.Import) else num_parts - 1
    return bool(missing(imported.full, num_modules).rest)
