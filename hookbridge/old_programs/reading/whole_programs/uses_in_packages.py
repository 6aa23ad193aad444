"""What installed packages use of the names that NumPy removed.

`hookbridge run` restores these names for the files that use them, so that such a
package runs under it; it does not run by itself.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from hookbridge.old_programs.reading.names.import_statements import all_imports
from hookbridge.old_programs.reading.names.named_uses import uses
from hookbridge.old_programs.reading.one_file.evidence import TENSORFLOW, Use
from hookbridge.old_programs.reading.one_file.modules import Module, read_module
from hookbridge.old_programs.reading.whole_programs.libraries import (
    MAX_FILES,
    installed_packages,
    source_files,
)
from hookbridge.tf1_names.removed_in_libraries import (
    removed_names,
    removed_part,
    roots,
)

_LIBRARY = "NumPy"
# Those that look after themselves, or may remove names of their own.
LEFT_ALONE = frozenset({*TENSORFLOW, "hookbridge", *roots()})
_SKIPPED = frozenset({"test", "tests", "testing", "benchmarks"})


@functools.cache
def _restored_names() -> frozenset[str]:
    """Return the names that `hookbridge run` restores."""
    return frozenset(
        name
        for name, row in removed_names().items()
        if row.library == _LIBRARY
        and (row.replacement or row.is_restored)
        and not row.is_method  # only the program's own files get these
    )


@functools.cache
def _use_pattern() -> re.Pattern[bytes]:
    """Return the pattern of such a use; few files of newer packages match it."""
    inside = "|".join(
        sorted(re.escape(name.partition(".")[2]) for name in _restored_names())
    )
    return re.compile(rf"\b(?:np|numpy)\.(?:{inside})\b(?!\.)".encode())


def uses_in_packages(module: Module) -> Iterator[tuple[str, Use, int]]:
    """Yield the packages that a file imports and that use removed names.

    Each with the first use and their number. Nothing is imported. A package of many
    files is left out: it takes long to read, and is most often looked after.
    """
    packages = {
        imported.full.partition(".")[0] for imported in all_imports(module.nodes)
    }
    for name, folder in installed_packages(packages - LEFT_ALONE):
        if all_uses := _uses(folder):
            yield name, all_uses[0], len(all_uses)


@functools.cache
def _uses(folder: str) -> tuple[Use, ...]:
    """Return the uses of removed names in a package, one for each name and file."""
    first_uses: dict[tuple[str, str], Use] = {}
    files = source_files(folder, _SKIPPED)
    if len(files) > MAX_FILES:
        return ()
    for file in files:
        with open(file, "rb") as opened:
            if not _use_pattern().search(opened.read()):
                continue
        module = read_module(file)
        if not isinstance(module, Module):
            continue
        for node, full in uses(module.nodes, module.names):
            part = removed_part(full)
            if part in _restored_names() and id(node) not in module.guarded:
                first_uses.setdefault((part, file), Use(part, file, node.lineno))
    return tuple(first_uses.values())
