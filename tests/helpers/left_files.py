"""The files that a program leaves behind.

This file also runs on Python 3.7, where the results of TensorFlow 1.15 are recorded.
"""

from __future__ import annotations

import re
from pathlib import Path


def files_of(folder: Path) -> list[str]:
    """The files in a folder; a star replaces parts of names that differ by run."""
    found = set()
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        name = re.sub(r"events\.out\.tfevents\..*", "events*", name)
        name = re.sub(r"/\d{10}/", "/*/", name)
        if path.is_file():
            found.add(name)
    return sorted(found)
