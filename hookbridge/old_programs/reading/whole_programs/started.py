"""How a program is started: by the path of its main file, or by `-m` and its name."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import NamedTuple

from hookbridge import errors
from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.old_programs.reading.whole_programs.imported_files import folders_above
from hookbridge.old_programs.reading.whole_programs.programs import Programs


class ByName(NamedTuple):
    """A main file as `python -m` takes it.

    Attributes:
      name: the dotted name of its module.
      folder: the working directory, in which Python looks for modules then.
    """

    name: str
    folder: str


def files_of(name: str) -> list[str]:
    """Return the main file of a module for `-m`, and the packages above it.

    Raises:
      errors.InvalidArgumentError: no such file is below the working directory.
    """
    path = os.path.join(*name.split("."))
    for file in (f"{path}.py", os.path.join(path, "__main__.py")):
        if os.path.isfile(file):
            above = [Path(file).parent, *Path(file).parent.parents]
            packages = [str(folder / "__init__.py") for folder in above]
            return [file, *filter(os.path.isfile, packages)]
    raise errors.InvalidArgumentError(
        f"Received the module {name!r}; expected one whose source is below the working "
        f"directory, as {path}.py. Of a tool such as pytest give the files that it is "
        "to run."
    )


def by_name(main: Module, programs: Programs) -> ByName | None:
    """Return how `python -m` runs a main file; None if it runs by its path.

    By its path Python looks for modules beside the main file, and not above it; and
    the file is in no package, so that it can import nothing from `.`.

    Args:
      main: the main file.
      programs: the programs of it, whose imports show the folder that they begin in.
    """
    if not main.file or main.notebook is not None:
        return None
    below = list(_folders_below(main, programs))
    if not below:
        return None
    name = PurePath(main.path).relative_to(below[0]).with_suffix("").parts
    name = name[:-1] if name[-1] == "__main__" else name
    is_named = all(part.isidentifier() for part in name)
    return ByName(".".join(name), below[0]) if is_named else None


def _folders_below(main: Module, programs: Programs) -> Iterator[str]:
    """Yield the folders above a main file in which it needs Python to look."""
    folder = os.path.dirname(main.path)
    on_path = map(os.path.realpath, filter(None, sys.path[1:]))
    reached = {folder, *programs.added, *on_path}
    for part in programs.parts(main):
        for dotted, module in programs.in_program(part).own_modules.items():
            path = PurePath(module.path)
            path = path.parent if path.stem == "__init__" else path
            root = str(path.parents[dotted.count(".")])
            if root != path.anchor and root not in reached:
                if f"{folder}{os.sep}".startswith(f"{root}{os.sep}"):
                    yield root
            elif root == path.anchor and part is main:  # it is imported from `.`
                yield folders_above(folder)[-1]
