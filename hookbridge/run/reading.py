"""Reads a program and those of its own modules that it imports; executes nothing."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from hookbridge import errors
from hookbridge.migrate.findings import Unread
from hookbridge.migrate.guest_classes import Module
from hookbridge.migrate.names import Names
from hookbridge.migrate.sources import read

MAX_FILES = 2000


def read_file(file: str) -> Module | Unread:
    """One file and the names that it binds."""
    found = read(Path(file))
    return found if isinstance(found, Unread) else Module(found[0], Names(found[0]))


def read_program(file: str, roots: Sequence[str]) -> list[Module]:
    """The main file, then the modules that it imports from the user's own folders.

    A module that cannot be parsed is left out: importing it later shows the error.

    Args:
      file: the main file.
      roots: folders in which modules are looked for.

    Raises:
      errors.InvalidArgumentError: the main file is no Python source.
    """
    main = read_file(file)
    if isinstance(main, Unread):
        raise errors.InvalidArgumentError(
            f"Received the program {file!r}; expected Python source: {main.reason}."
        )
    found = {os.path.realpath(file): main}
    waiting = [main]
    while waiting and len(found) < MAX_FILES:
        for name in _imported(waiting.pop(), roots):
            path = os.path.realpath(name)
            if path not in found and not isinstance(module := read_file(name), Unread):
                found[path] = module
                waiting.append(module)
    return list(found.values())


def _imported(module: Module, roots: Sequence[str]) -> Iterator[str]:
    """The files that a module's import statements may refer to."""
    folder = os.path.dirname(os.path.abspath(module.source.file))
    for node in module.source.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(alias.name.split("."), roots)
        elif isinstance(node, ast.ImportFrom):
            base = (node.module or "").split(".") if node.module else []
            places = roots
            if node.level:
                up = folder
                for _ in range(node.level - 1):
                    up = os.path.dirname(up)
                places = (up,)
            for alias in node.names:
                yield from _files([*base, alias.name], places)


def _files(parts: list[str], roots: Sequence[str]) -> Iterator[str]:
    """The files of the packages in a dotted name, and the file of its last part."""
    if parts[:1] == ["hookbridge"]:
        return  # a library, even if `roots` has a checkout of it
    for root in roots:
        place, found = root, []
        for part in parts:
            place = os.path.join(place, part)
            if os.path.isfile(package := os.path.join(place, "__init__.py")):
                found.append(package)
            elif os.path.isfile(f"{place}.py"):
                found.append(f"{place}.py")
                break
            elif not os.path.isdir(place):
                break
        if found:
            yield from found
            return
