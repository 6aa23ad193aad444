"""What `hookbridge run` is to run, and where the code of the program is."""

from __future__ import annotations

import importlib
import os
import site
import sys
import sysconfig
import types
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from typing import Any

import hookbridge
from hookbridge import errors
from hookbridge.ground.arguments import why_no_file
from hookbridge.old_programs.reading.whole_programs.libraries import (
    is_old_library,
    package_of,
)

HERE = os.path.dirname(os.path.abspath(hookbridge.__file__))


@dataclass(frozen=True)
class Launch:
    """A program, its arguments, and what the user decided about its world.

    The object can be pickled: child processes of the program get it.
    """

    program: str  # the path of a file, or the name of a module if `as_module`
    arguments: tuple[str, ...] = ()  # what the program finds in `sys.argv[1:]`
    as_module: bool = False  # whether it runs as `python -m` does
    keras: int | None = None  # 2 or 3; None reads it from the source
    # Whether TensorFlow behaves as version 1 does; None reads it from the source.
    v1: bool | None = None
    # A file with hooks and callbacks that join every training; None for none.
    guests: str | None = None
    # Steps in an epoch of these guests, for loops without epochs.
    steps_per_epoch: int | None = None
    # A folder, and the options of the `hb.recorder` that joins after the guests.
    record: tuple[str, dict[str, Any]] | None = None
    # Installed packages that mean TensorFlow 1; of all others, their source decides.
    old_libraries: tuple[str, ...] = ()


@dataclass(frozen=True)
class Located:
    """Where a program was found."""

    file: str  # its main file, as `__file__` of `__main__` shows it
    folder: str  # what Python puts first into `sys.path` for it
    argv0: str  # what Python puts into `sys.argv[0]`
    spec: ModuleSpec | None = None  # how it was found, for a module; None for a file
    # The packages above a module, or the files that a tool such as pytest is to run.
    others: tuple[str, ...] = ()

    def import_packages(self) -> None:
        """Import the packages above a module, as `python -m` does first."""
        if self.spec is not None and self.spec.parent:
            importlib.import_module(self.spec.parent)


def locate(launch: Launch) -> Located:
    """Find the main file."""
    return _module(launch) if launch.as_module else _file(launch.program)


def _file(path: str) -> Located:
    """Return where a program is that is given as a file or a folder."""
    file = os.path.join(path, "__main__.py") if os.path.isdir(path) else path
    if not os.path.isfile(file):
        reason = why_no_file(path)
        if os.path.isdir(path):
            reason += " without `__main__.py`"
        raise errors.InvalidArgumentError(
            f"Received the program {path!r}, which {reason}; expected a Python file, "
            "or `-m` and the name of a module."
        )
    if file.endswith(".ipynb"):
        file = os.path.abspath(file)  # it runs in its own folder
    # As in Python: a link to a file is followed, a link to a folder is not.
    folder = path if os.path.isdir(path) else os.path.dirname(os.path.realpath(file))
    return Located(file, os.path.abspath(folder), path)


def _module(launch: Launch) -> Located:
    """Return where a program is that is given by `-m`, with the packages above it."""
    name = launch.program
    specs = _specs(name)
    if specs and specs[-1].submodule_search_locations is not None:
        specs = _specs(f"{name}.__main__")
    file = specs[-1].origin or "" if specs else ""
    if not file.endswith(".py"):
        raise errors.InvalidArgumentError(
            f"Received the module {name!r}; expected one that Python finds and whose "
            "source is there."
        )
    packages = [spec.origin or "" for spec in specs[:-1]]
    folder, own_code = os.getcwd(), OwnCode(os.getcwd())
    further = (
        packages
        if own_code.is_adapted(file)
        else _files_to_run(launch.arguments, folder)
    )
    sources = tuple(path for path in further if path.endswith(".py"))
    return Located(file, folder, file, specs[-1], sources)


def _specs(name: str) -> list[ModuleSpec]:
    """Return how a module and the packages above it are found; empty if they are not.

    Nothing is imported: the packages may need the world that the program has not yet.
    A folder without `__init__.py` is found through the imported package around it. An
    empty module takes the place of that package for as long as this function looks.
    """
    result: list[ModuleSpec] = []
    parts = name.split(".")
    empty: list[str] = []
    try:
        for end in range(1, len(parts) + 1):
            whole = ".".join(parts[:end])
            path = list(result[-1].submodule_search_locations or ()) if result else None
            spec = None if path == [] else _spec(whole, path)
            if spec is None:
                return []
            result.append(spec)
            if whole not in sys.modules:
                sys.modules[whole] = package = types.ModuleType(whole)
                package.__path__ = spec.submodule_search_locations or []
                empty.append(whole)
        return result
    finally:
        for whole in empty:
            del sys.modules[whole]


def _spec(whole: str, path: list[str] | None) -> ModuleSpec | None:
    """Return what the first finder says that knows a module in some folders."""
    finders = (finder for finder in sys.meta_path if hasattr(finder, "find_spec"))
    specs = (finder.find_spec(whole, path) for finder in finders)
    return next((spec for spec in specs if spec is not None), None)


def _files_to_run(arguments: Sequence[str], folder: str) -> list[str]:
    """Return the Python files that a tool such as pytest or coverage is to run."""
    places = [a.partition("::")[0] for a in arguments if not a.startswith("-")]
    result: list[str] = []
    for path in [p for p in places if os.path.exists(p)] or [folder]:
        if os.path.isfile(path):
            above = os.path.join(os.path.dirname(path), "conftest.py")
            result += [path, *([above] if os.path.isfile(above) else [])]
            continue
        for inside, folders, files in os.walk(path):
            folders[:] = [f for f in folders if f[:1] not in "._"]
            result += [os.path.join(inside, file) for file in sorted(files)]
    return result


class OwnCode:
    """Tells the program's own files from those of installed packages.

    Files of `old_libraries`, which mean TensorFlow 1 as the user says, are changed like
    the program's; so are those of packages whose source shows it.
    """

    def __init__(self, folder: str, old_libraries: Collection[str] = ()) -> None:
        self.folder: str = os.path.realpath(folder)
        self._old_libraries = old_libraries
        paths = sysconfig.get_paths()
        places = [
            *(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")),
            site.getusersitepackages(),
            HERE,
            os.path.join(HERE, "adapters"),  # a link, in a checkout
        ]
        self._installed = tuple({os.path.realpath(p) + os.sep for p in places})
        self._folders: dict[str, bool] = {}

    def is_adapted(self, file: str) -> bool:
        """Return whether a file is changed when it is loaded."""
        if self.is_old_library(file):
            return True
        # TensorFlow imports thousands of modules, and this is called for each of them:
        # the answer is kept for each folder.
        folder = os.path.dirname(
            os.path.realpath(file) if os.path.islink(file) else file
        )
        if folder not in self._folders:
            self._folders[folder] = self._is_own(os.path.realpath(folder))
        return self._folders[folder]

    def _is_own(self, folder: str) -> bool:
        if package_of(os.path.join(folder, "_.py"))[0]:
            return False
        return not (folder + os.sep).startswith(self._installed)

    def is_old_library(self, file: str) -> bool:
        """Return whether it is a file of an installed package of TensorFlow 1."""
        return is_old_library(file, self._old_libraries)

    def is_by_author(self, file: str) -> bool:
        """Return whether the program's author wrote a file: it is of no library."""
        return self.is_adapted(file) and not self.is_old_library(file)

    def is_inside(self, file: str) -> bool:
        """Return whether a file is in the program's folder."""
        return os.path.realpath(file).startswith(self.folder + os.sep)

    def roots(self) -> list[str]:
        """Return folders in which the program's own modules are looked for."""
        folders = [path for path in sys.path if path and os.path.isdir(path)]
        return [
            self.folder,
            *(p for p in folders if self.is_adapted(os.path.join(p, "_.py"))),
        ]
