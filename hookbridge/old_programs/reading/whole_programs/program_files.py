"""Reads the files of programs, and the modules that they import."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace

from hookbridge import errors
from hookbridge.old_programs.reading.one_file.modules import (
    Module,
    Unread,
    find_files,
    read_module,
)
from hookbridge.old_programs.reading.whole_programs.imported_files import folders_above
from hookbridge.old_programs.reading.whole_programs.programs import Programs
from hookbridge.old_programs.reading.whole_programs.search_path import (
    own_folders_on_path,
)


def read_program(files: Sequence[str], roots: Sequence[str]) -> Programs:
    """Read the main file of a program, and what it imports from own folders.

    A module that cannot be parsed is left out: importing it later shows the error.

    Args:
      files: the paths of the program's files, the main one first.
      roots: the folders in which its imports are looked up.

    Raises:
      errors.InvalidArgumentError: the main file cannot be parsed.
    """
    main, *imported_ones = map(read_module, files)
    if isinstance(main, Unread):
        kind = "a notebook" if files[0].endswith(".ipynb") else "Python source"
        raise errors.InvalidArgumentError(
            f"Received the program {files[0]!r}; expected {kind}: {main.reason}."
        )
    modules = {m.path: m for m in (main, *imported_ones) if not isinstance(m, Unread)}
    return Programs(list(modules.values()), lambda module: roots)


def read_programs(
    paths: Iterable[str | os.PathLike[str]], folder: str = ""
) -> tuple[Programs, list[Unread]]:
    """Read files and folders, and the modules that they import.

    Args:
      paths: the files, and the folders with all of their Python files and notebooks.
      folder: where `python -m` looks for modules, and not beside the files; empty for
        files that run by their paths.

    Returns:
      The programs, and the files and cells that cannot be parsed.
    """
    paths = list(paths)
    files = [read_module(path) for path in find_files(paths)]
    modules = [file for file in files if isinstance(file, Module)]
    unread = [file for file in files if isinstance(file, Unread)]
    cells = [cell for module in modules for cell in module.unread_cells]
    tops = {os.path.realpath(path) for path in paths if os.path.isdir(path)}
    # A file that is given by its name is run: Python looks in its folder first.
    mains = [os.path.dirname(os.path.realpath(p)) for p in paths if os.path.isfile(p)]
    on_path = own_folders_on_path()

    def roots(module: Module) -> list[str]:
        folders = [folder] if folder else [*mains, *folders_above(module.file, tops)]
        return list(dict.fromkeys([*folders, *on_path]))

    programs = Programs(modules, roots)
    named = {os.path.realpath(path) for path in paths if os.path.isfile(path)}
    wanted = [
        file
        for file in unread
        if os.path.realpath(file.file) in named or programs.imports_unread(file)
    ]
    unread = [replace(file, is_apart=file not in wanted) for file in unread]
    return programs, [*unread, *cells]
