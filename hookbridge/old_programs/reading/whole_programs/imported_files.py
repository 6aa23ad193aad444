"""Which file an import statement means, and what it binds."""

from __future__ import annotations

import ast
import os
from collections.abc import Collection, Iterator, Mapping, Sequence

from hookbridge.old_programs.reading.names import starred
from hookbridge.old_programs.reading.names.bound_names import Given, Names
from hookbridge.old_programs.reading.names.import_statements import (
    all_imports,
    loaded_module,
    module_name,
)
from hookbridge.old_programs.reading.one_file.modules import Module


def folders_above(file: str, tops: Collection[str] = ()) -> list[str]:
    """Return the folders in which a file's own modules may be, its own first.

    `tops` are real paths of folders that hold whole programs. A folder above is taken
    if it is not above these, or if the folder below it is a package.
    """
    folder = os.path.dirname(os.path.realpath(file))
    folders = [folder]
    while os.path.isfile(os.path.join(folder, "__init__.py")) or any(
        folder.startswith(os.path.join(top, "")) for top in tops
    ):
        folder = os.path.dirname(folder)
        folders.append(folder)
    return folders


def imported_files(module: Module, roots: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the dotted name and file of each import; `roots` are searched in order."""
    folder = os.path.dirname(os.path.abspath(module.file))
    calls = (node for node in module.nodes if isinstance(node, ast.Call))
    for name in filter(None, map(loaded_module, calls)):
        yield from _files(name.split("."), roots)
    for imported_name in all_imports(module.nodes):
        level = getattr(imported_name.node, "level", 0)
        parts = [part for part in imported_name.full.split(".") if part]
        if not level:
            yield from _files(parts, roots)
            continue
        up = os.path.normpath(os.path.join(folder, *[".."] * (level - 1)))
        package = module_name(None, level, module.package)
        for name, file in _files(parts, (up,)):
            yield f"{package}.{name}", file
        yield from _packages_above(module)


def _packages_above(module: Module) -> Iterator[tuple[str, str]]:
    """Yield the packages that Python loads before a file that imports from them."""
    folder, package = os.path.dirname(os.path.abspath(module.file)), module.package
    while os.path.isfile(file := os.path.join(folder, "__init__.py")):
        yield ".".join(package), file
        folder, package = os.path.dirname(folder), package[:-1]


def _files(parts: list[str], roots: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the files of the packages in a dotted name, and of its last part."""
    if parts[:1] == ["hookbridge"]:
        return  # a library, even if `roots` has a checkout of it
    for root in roots:
        path, files = root, []
        for number, part in enumerate(parts, 1):
            path = os.path.join(path, part)
            name = ".".join(parts[:number])
            if os.path.isfile(package := os.path.join(path, "__init__.py")):
                files.append((name, package))
            elif os.path.isfile(f"{path}.py"):
                files.append((name, f"{path}.py"))
                break
            elif not os.path.isdir(path):
                break
        if files:
            yield from files
            return


def know(module: Module, own_modules: Mapping[str, Module]) -> None:
    """Give the names of a module the names of the modules that it imports."""
    module.names.by_module = {
        dotted: imported_module.names for dotted, imported_module in own_modules.items()
    }


def share_assigned(parts: Collection[Module]) -> None:
    """Let the files of a program know the names that each of them assigns to."""
    assigned = frozenset().union(*(part.names.assigned for part in parts))
    for part in parts:
        part.names.assigned_by_others |= assigned


def link(module: Module, own_modules: Mapping[str, Module]) -> bool:
    """Give a module the names that it imports from other modules of its program.

    `from layers import *` and `from layers import tf as t` bind what `layers` binds.

    Args:
      module: the module, whose names are added to.
      own_modules: the program's modules, by the names under which they are imported.

    Returns:
      Whether there were any new ones.
    """
    names = module.names
    before = dict(names.bound)
    know(module, own_modules)
    _take_starred(names)
    starred.follow(names)
    _take_imported(names)
    through = dict(_through(module))
    if names.bound == before and through == names.through:
        return False
    names.through = through
    names.add_aliases()
    return True


def _take_starred(names: Names) -> None:
    """Bind what other modules of the program bind that this one stars."""
    for starred_names in filter(None, map(names.by_module.get, names.scopes.starred)):
        for name, dotted in starred_names.bound.items():
            is_given = name in starred_names.given
            if not (is_given or name.startswith("_") or name in names.bound_here):
                names.bound[name] = dotted


def _take_imported(names: Names) -> None:
    """Follow names that it imports from other modules of the program."""
    for name, dotted in list(names.bound.items()):
        module, _, attribute = dotted.rpartition(".")
        source = None if dotted in names.by_module else names.by_module.get(module)
        if source is None:
            continue
        if attribute in source.bound and attribute not in source.given:
            names.bound[name] = source.bound[attribute]
            names.handed_on.add(name)
        elif from_star := _starred_in(source, attribute):
            names.bound[name] = from_star.dotted
            names.given[name] = from_star._replace(star="")


def _starred_in(source: Names, name: str) -> Given | None:
    """Return where another module's stars have a name that it does not bind."""
    return None if source.scopes.module.has(name) else starred.giver(source, name)


def _through(module: Module) -> Iterator[tuple[str, str]]:
    """Yield what attributes of other modules of its program are: `common.tf`."""
    names = module.names
    if not names.by_module:
        return
    for node in module.nodes:
        if not isinstance(node, ast.Attribute):
            continue
        owner = names.by_imports(node.value)
        source = None if owner is None else names.by_module.get(owner)
        if source is None or f"{owner}.{node.attr}" in names.by_module:
            continue
        if node.attr in source.bound:
            yield f"{owner}.{node.attr}", source.bound[node.attr]
        elif from_star := _starred_in(source, node.attr):
            yield f"{owner}.{node.attr}", from_star.dotted
