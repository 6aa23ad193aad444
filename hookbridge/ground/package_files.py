"""The files that the package brings along, also from a zip on `sys.path`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from typing import Any


def packaged(package: str, *names: str) -> Any:
    """A file or folder of a package, which has `read_text` and `iterdir`.

    Args:
      package: the package's name.
      *names: the parts of the path below it.
    """
    place: Any = resources.files(package)
    for name in names:
        place = place / name
    return place


def files_below(folder: Any, suffix: str) -> Iterator[str]:
    """The paths below a folder of `packaged` that end with a suffix."""
    for item in folder.iterdir():
        if item.is_dir():
            yield from (f"{item.name}/{path}" for path in files_below(item, suffix))
        elif item.name.endswith(suffix):
            yield item.name
