"""What the source of an installed package certainly lacks; nothing is imported."""

from __future__ import annotations

import functools
import importlib.util
import types
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hookbridge.ground import compat
from hookbridge.ground.imports.module_names import ModuleNames, names_of_module
from hookbridge.tf1_names.parsing import parse_source
from hookbridge.tf1_names.target import Target

# What each module has, whatever its text says.
_OF_MODULES = frozenset({*vars(types.ModuleType("")), *dir(types.ModuleType)}) | {
    "__annotations__",
    "__builtins__",
    "__cached__",
    "__file__",
    "__path__",
}


class Missing(NamedTuple):
    """The part of a dotted name that is certainly not there.

    Attributes:
      rest: that part and all after it; empty if nothing is missing for certain.
      in_module: whether the module before it is there and lacks the name.
      is_certain: False if nobody can tell whether anything is missing.
    """

    rest: str = ""
    in_module: bool = False
    is_certain: bool = True


_UNKNOWN = Missing(is_certain=False)


def missing(name: str, num_modules: int = 1) -> Missing:
    """Return what an installed package lacks of a dotted name in it.

    Nothing is known if the package itself is not installed. Attributes of classes and
    functions are not looked at.

    Args:
      name: the dotted name.
      num_modules: the number of its parts that have to be modules: an import of them
        asks for files, and no `__getattr__` helps.
    """
    root, *parts = name.split(".")
    path = package(root)
    return _UNKNOWN if path is None else missing_below(path, parts, num_modules - 1)


def certainly_has(module: str, name: str) -> bool:
    """Return whether an installed module has a name, and its text shows it."""
    lack = missing(f"{module}.{name}", module.count(".") + 1)
    return lack.is_certain and not lack.rest


def missing_below(path: Path, parts: Sequence[str], num_modules: int) -> Missing:
    """Return what is missing of a name below a folder or a module.

    Args:
      path: the folder, or the file of the module.
      parts: the parts of the name below it.
      num_modules: how many of them, from the first one on, have to be modules.
    """
    for number, part in enumerate(parts):
        absent = ".".join(parts[number:])
        if path.is_file():
            return _missing_unless(has(path, part), Missing(absent, True))
        inside = path / part
        if (inside / "__init__.py").is_file() or (
            inside.is_dir() and not any(map(_is_built, path.glob(f"{part}.*")))
        ):
            path = inside
        elif (file := inside.with_suffix(".py")).is_file():
            path = file
        else:
            is_module = number < num_modules
            return _missing_unless(_package_has(path, part, is_module), Missing(absent))
    return Missing()


def module_of(name: str) -> str:
    """Return the module of a package that a name is in; empty for other packages.

    Args:
      name: the dotted name, of a module or of something in one.
    """
    root, *parts = name.split(".")
    path = package(root)
    if path is None or path.is_file():
        return ""
    modules = [root]
    for part in parts:
        is_package = (path / part / "__init__.py").is_file()
        if not (is_package or any(path.glob(f"{part}.*"))):
            break
        modules.append(part)
        path /= part
    return ".".join(modules)


def _missing_unless(is_there: bool | None, lack: Missing) -> Missing:
    """Return nothing if the part is there, and `lack` if it certainly is not."""
    if is_there is None:
        return _UNKNOWN
    return Missing() if is_there else lack


def _package_has(folder: Path, part: str, is_module: bool) -> bool | None:
    """Return whether a package has a part that is no Python file; None if unknown.

    `is_module` tells that the part has to be a module.
    """
    if any(map(_is_built, folder.glob(f"{part}.*"))):
        return True
    init = folder / "__init__.py"
    names, is_bound = names_in(init), has(init, part)
    if not is_module or names is None:
        return is_bound
    # What the package binds may be a module of another name.
    return None if is_bound or names.adds_modules else False


def _is_built(file: Path) -> bool:
    """Return whether Python can import a file that is not Python source."""
    return file.suffix in (".so", ".pyd", ".pyc")


def missing_private(name: str, target: Target) -> Missing:
    """Return what the target lacks of a private name below `tensorflow`.

    No list of private names is kept: for another target than the installed TensorFlow
    nothing is known.
    """
    installed = ".".join(map(str, compat.installed_tf_version()))
    return missing(name) if target.version == installed else _UNKNOWN


@functools.cache
def package(root: str) -> Path | None:
    """Return the folder, or the only file, of an installed package, or None."""
    try:
        spec = importlib.util.find_spec(root)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or ())
    if places:
        # A package in several places has no file of its own.
        return Path(places[0]) if spec.origin else None
    file = Path(spec.origin or "")
    return file if file.suffix == ".py" else None


@functools.cache
def has(file: Path, name: str) -> bool | None:
    """Return whether a module has a name; None if its text does not show it."""
    return _has_unvisited(file, name, set())


def _has_unvisited(file: Path, name: str, visited: set[Path]) -> bool | None:
    """Return what `has` does; nothing more comes of modules already visited."""
    visited.add(file)
    names = names_in(file)
    if names is None:
        return False
    if names.removes_names:
        return None
    if name in names.certain or name in _OF_MODULES:
        return True
    is_unknown = names.is_opaque or name in names.possible
    results: set[bool | None] = {None} if is_unknown else {False}
    results |= {_in_starred(file, star, name, visited) for star in names.starred}
    if True in results:
        return True
    return None if None in results else False


def _in_starred(file: Path, starred: str, name: str, visited: set[Path]) -> bool | None:
    """Return whether `from starred import *` in a file binds a name."""
    dots = len(starred) - len(starred.lstrip("."))
    parts = [part for part in starred.split(".") if part]
    path = file.parents[dots - 1] if dots else package(parts.pop(0))
    if path is None:
        return None  # not installed
    path = path.joinpath(*parts)
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if path.is_dir() and any(path.glob(f"{name}*")):
        return None  # a star gives those modules of a package that were imported
    return False if source in visited else _gives(source, name, visited)


def _gives(source: Path, name: str, visited: set[Path]) -> bool | None:
    """Return whether a star import of a file gives a name."""
    names = names_in(source)
    if names is None:
        return None  # a module in another language shows nothing
    if names.listed is not None:
        return name in names.listed
    if name.startswith("_") and "__all__" not in names.possible:
        return False
    result = _has_unvisited(source, name, visited)
    # Which of its names a star gives is computed.
    return None if result and "__all__" in names.possible else result


@functools.cache
def names_in(file: Path) -> ModuleNames | None:
    """Return the names of a module; None if the file is not there, or is not Python."""
    try:
        return names_of_module(parse_source(file.read_bytes()))
    except (OSError, SyntaxError, ValueError):
        return None
