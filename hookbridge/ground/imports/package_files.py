"""The files that the package brings along, also from a zip on `sys.path`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from typing import Any


def packaged(package: str, *names: str) -> Any:
    """Return a file or folder of a package, which has `read_text` and `iterdir`.

    Args:
      package: the package's name.
      *names: the parts of the path below it.
    """
    entry: Any = resources.files(package)
    for name in names:
        entry = entry / name
    return entry


def of_wheel(package: str, name: str, *, in_checkout: str) -> Any:
    """Return a file or folder that `setup.py` copies into a package of a wheel.

    Args:
      package: the package that has it in a wheel.
      name: its name there.
      in_checkout: where a checkout has it, from the root of the repository.
    """
    entry = packaged(package, name)
    is_there = entry.is_file() or entry.is_dir()
    return entry if is_there else packaged("hookbridge").parent / in_checkout


def files_below(folder: Any, suffix: str) -> Iterator[str]:
    """Yield the paths below a folder of `packaged` that end with a suffix."""
    for item in folder.iterdir():
        if item.is_dir():
            yield from (f"{item.name}/{path}" for path in files_below(item, suffix))
        elif item.name.endswith(suffix):
            yield item.name
