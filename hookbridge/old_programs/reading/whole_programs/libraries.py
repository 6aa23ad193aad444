"""Installed packages that were written for TensorFlow 1."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import os
import re
import sys
from collections.abc import Collection, Iterator

from hookbridge.old_programs.reading.names.starred import PLACES
from hookbridge.old_programs.reading.one_file.evidence import TENSORFLOW, Evidence, Use
from hookbridge.old_programs.reading.one_file.modules import Module, read_module

# They run on no TensorFlow 2 by themselves, which their source does not show.
_KNOWN_OLD = frozenset({"tf_slim"})
# Parts of TensorFlow and Keras themselves, and what is made for both versions.
_OTHERS = frozenset({*TENSORFLOW, "tensorboard", "hookbridge"}) - _KNOWN_OLD
_IMPORT = re.compile(rb"^[ \t]*(?:import|from)[ \t]+(?:tensorflow|keras)\b", re.M)
# More files of a package are not read.
MAX_FILES = 400


def is_old_library(file: str, named: Collection[str]) -> bool:
    """Return whether a file of an installed package means TensorFlow 1.

    `named` ones do.

    A file does if it has names that only TensorFlow 1 had and none that TensorFlow 2 or
    `tf.compat.v1` has. A file without either means what the rest of its package means.
    """
    package, folder = package_of(file)
    if not package or package in _OTHERS:
        return False
    return package in named or package in _KNOWN_OLD or _is_old(file, folder)


@functools.cache
def _is_old(file: str, folder: str) -> bool:
    if not _imports_tensorflow_or_keras(file):
        return False
    module = read_module(file)
    if not isinstance(module, Module) or module.evidence.new:
        return False
    return bool(_shows_old(module.evidence) or _reason(folder))


@functools.cache
def _reason(folder: str) -> Use | None:
    """Return the first name that shows that a package means TensorFlow 1, if any."""
    paths = filter(_imports_tensorflow_or_keras, sorted(source_files(folder)))
    files = map(read_module, itertools.islice(paths, MAX_FILES))
    evidences = [m.evidence for m in files if isinstance(m, Module)]
    if any(evidence.new for evidence in evidences):
        return None
    return next(filter(None, map(_shows_old, evidences)), None)


def old_libraries(module: Module) -> Iterator[tuple[str, Use]]:
    """Yield the old packages that a module imports, each with what shows it.

    Nothing is imported: the packages are looked for.
    """
    bound, starred = module.names.bound, module.names.scopes.starred
    roots = {name.partition(".")[0] for name in (*bound.values(), *starred)}
    for name, folder in installed_packages(roots - _OTHERS - _KNOWN_OLD):
        if (use := _reason(folder)) is not None:
            yield name, use


def installed_packages(names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the packages that are installed, each with its folder or only file.

    Args:
      names: names of packages, of which some may not exist.
    """
    for name in sorted(names):
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            continue
        package, folder = package_of("" if spec is None else spec.origin or "")
        if package and package == name:
            yield name, folder


def package_of(file: str) -> tuple[str, str]:
    """Return the installed package that a file belongs to, and its folder or only file.

    Both are empty for a file that is not installed.
    """
    top = _packages_above(os.path.dirname(file))
    if not top:
        return "", ""
    name = file[len(top) + 1 :].partition(os.sep)[0]
    return name.removesuffix(".py"), os.path.join(top, name)


@functools.cache
def _packages_above(folder: str) -> str:
    """Return the innermost folder of installed packages at or above a folder.

    May be empty.

    It has the name of one, or is on Python's path, but is not the program's folder,
    and holds what `pip` writes about packages (`pip install --target`).
    """
    if os.path.basename(folder) in PLACES:
        return folder
    is_target = folder in sys.path[1:] and os.path.isdir(folder)
    if is_target and any(n.endswith(".dist-info") for n in os.listdir(folder)):
        return folder
    above = os.path.dirname(folder)
    return "" if above == folder else _packages_above(above)


def source_files(folder: str, skipped: Collection[str] = ()) -> list[str]:
    """Return the Python files of an installed package.

    Args:
      folder: the folder of the package, or its only file.
      skipped: names of folders that are left out.
    """
    if not os.path.isdir(folder):
        return [folder] if folder.endswith(".py") else []
    paths = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - set(skipped))
        paths += [os.path.join(parent, n) for n in sorted(names) if n.endswith(".py")]
    return paths


def _imports_tensorflow_or_keras(file: str) -> bool:
    try:
        with open(file, "rb") as opened:
            return _IMPORT.search(opened.read()) is not None
    except OSError:
        return False


def _shows_old(evidence: Evidence) -> Use | None:
    return None if evidence.new else evidence.old or evidence.leftover
