"""Gives files of installed libraries the names that Python and NumPy removed.

An old program brings old libraries. A file of theirs that uses such a name, and has no
other way without it, gets it; all other files keep Python and NumPy as they are.
"""

from __future__ import annotations

import functools
import re
import types
from importlib.machinery import SourceFileLoader

from hookbridge.ground.groups import grouped
from hookbridge.old_programs.reading.one_file.modules import Unread, read_module
from hookbridge.old_programs.reading.whole_programs.libraries import package_of
from hookbridge.old_programs.reading.whole_programs.uses_in_packages import LEFT_ALONE
from hookbridge.old_programs.run.restored import restored_names
from hookbridge.old_programs.run.restored.lookup_calls import with_library_lookups
from hookbridge.tf1_names import removed_in_libraries

_LIBRARIES = ("Python", "NumPy")
# Module -> what files call it.
_SHORT = {"numpy": ("np", "numpy")}


class OldLibraryLoader(SourceFileLoader):
    """Loads a file of a library that uses removed names."""

    def get_code(self, fullname: str) -> types.CodeType:
        """Compile the file; `__pycache__` is neither read nor written."""
        path = self.get_filename(fullname)
        module = read_module(path)
        if isinstance(module, Unread):
            return compile(self.get_data(path), path, "exec", dont_inherit=True)
        tree = with_library_lookups(module.tree, module.names, module.guarded)
        code: types.CodeType = compile(tree, path, "exec", dont_inherit=True)
        return code


def is_one(path: str) -> bool:
    """Return whether a file of an installed package may need a removed name."""
    package = package_of(path)[0]
    if not package or package in LEFT_ALONE:
        return False
    with open(path, "rb") as opened:
        source = opened.read()
    return any(
        start in source and pattern.search(source) for start, pattern in _patterns()
    )


@functools.cache
def _patterns() -> list[tuple[bytes, re.Pattern[bytes]]]:
    """Return how a file uses a removed name, and what such a use begins with.

    A beginning is looked for first: that is quick, and most files have none.
    """
    rows = removed_in_libraries.removed_names()
    known = restored_names.names() & rows.keys()
    parts = (n.rpartition(".") for n in known if rows[n].library in _LIBRARIES)
    below = grouped((module, name) for module, _, name in parts)
    texts: dict[str, str] = {f"import {name}": r"\b" for name in below.pop("", ())}
    for module, names in below.items():
        any_name = rf"(?:{'|'.join(sorted(names))})\b"
        package = module.rpartition(".")[2]
        texts |= {f"{short}.": any_name for short in _SHORT.get(package, (package,))}
        texts[f"from {module} import"] = rf"(?:[^#\n(]*\b|\s*\([^)]*\b){any_name}"
    return [
        (start.encode(), re.compile(f"{re.escape(start)}{following}".encode()))
        for start, following in texts.items()
    ]
