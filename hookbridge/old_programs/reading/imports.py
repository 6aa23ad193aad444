"""Which file an import statement means, and what it binds."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence

from hookbridge.old_programs.reading.bound_names import imports, module_name
from hookbridge.old_programs.reading.modules import Module


def folders_above(file: str, tops: Collection[str] = ()) -> list[str]:
    """The folders in which a file's own modules may be: its own, then those above it.

    `tops` are real paths of folders that hold whole programs. A folder above is taken
    if it is not above these, or if the folder below it is a package.
    """
    folder = os.path.dirname(os.path.realpath(file))
    folders = [folder]
    while folder not in tops and (
        os.path.isfile(os.path.join(folder, "__init__.py"))
        or any(folder.startswith(os.path.join(top, "")) for top in tops)
    ):
        folder = os.path.dirname(folder)
        folders.append(folder)
    return folders


def imported(module: Module, roots: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The dotted name and file of each import; `roots` are searched in order."""
    folder = os.path.dirname(os.path.abspath(module.file))
    for one in (one for node in module.nodes for one in imports(node)):
        level = getattr(one.node, "level", 0)
        parts = [part for part in one.full.split(".") if part]
        if not level:
            yield from _files(parts, roots)
            continue
        up = os.path.normpath(os.path.join(folder, *[".."] * (level - 1)))
        package = module_name(None, level, module.package)
        for name, file in _files(parts, (up,)):
            yield f"{package}.{name}", file
        package_file = os.path.join(up, "__init__.py")
        if len(parts) == 1 and os.path.isfile(package_file):
            yield package, package_file


def _files(parts: list[str], roots: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The files of the packages in a dotted name, and the file of its last part."""
    if parts[:1] == ["hookbridge"]:
        return  # a library, even if `roots` has a checkout of it
    for root in roots:
        place, files = root, []
        for number, part in enumerate(parts, 1):
            place = os.path.join(place, part)
            name = ".".join(parts[:number])
            if os.path.isfile(package := os.path.join(place, "__init__.py")):
                files.append((name, package))
            elif os.path.isfile(f"{place}.py"):
                files.append((name, f"{place}.py"))
                break
            elif not os.path.isdir(place):
                break
        if files:
            yield from files
            return


def link(module: Module, own: Mapping[str, Module]) -> bool:
    """Gives a module the names that it imports from other modules of its program.

    `from layers import *` and `from layers import tf as t` bind what `layers` binds.
    """
    bound = module.names.bound
    before = dict(bound)
    for starred in module.names.starred:
        other = own.get(starred)
        if other is None:
            continue
        for name, dotted in other.names.bound.items():
            if not name.startswith("_") and name not in module.names.bound_here:
                bound[name] = dotted
    for name, dotted in list(bound.items()):
        place, _, last = dotted.rpartition(".")
        other = own.get(place)
        if other is not None and dotted not in own and last in other.names.bound:
            bound[name] = other.names.bound[last]
    if bound == before:
        return False
    module.names.add_aliases()
    return True
