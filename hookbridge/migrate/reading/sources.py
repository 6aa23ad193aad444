"""Python files and notebooks: which are read, and why some cannot be."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from hookbridge import errors
from hookbridge.arguments import why_no_file

SUFFIXES = (".py", ".ipynb")
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
# Folders that hold no code of the user's own.
SKIPPED = frozenset({".git", ".hg", ".venv", "venv", "__pycache__", "node_modules"})


def find_files(paths: Iterable[str | os.PathLike[str]]) -> Iterator[Path]:
    """The files to read, each once, in a fixed order.

    A file is taken whatever its suffix is; a folder gives its Python files and
    notebooks. Links are followed; each real file and folder is taken once.
    """
    earlier: set[str] = set()
    for path in map(Path, paths):
        if not (path.is_file() or path.is_dir()):
            raise errors.InvalidArgumentError(
                f"Received {os.fspath(path)!r}, which {why_no_file(path)}; expected "
                "Python files, notebooks or folders of them."
            )
        for file in _walk(path, earlier) if path.is_dir() else [path]:
            real = os.path.realpath(file)
            if real not in earlier:
                earlier.add(real)
                yield file


def _walk(top: Path, earlier: set[str]) -> Iterator[Path]:
    for folder, folders, files in os.walk(top, followlinks=True):
        real = os.path.realpath(folder)
        if real in earlier:
            folders.clear()  # a loop of links, or a path that was given twice
            continue
        earlier.add(real)
        folders[:] = sorted(set(folders) - SKIPPED)
        yield from (Path(folder, f) for f in sorted(files) if f.endswith(SUFFIXES))


def split_lines(text: str) -> list[str]:
    """The lines that Python counts, with their ends."""
    return _LINES.findall(text)


def why(error: SyntaxError) -> str:
    """What is wrong with a file, in a sentence."""
    text = (error.text or "").strip()
    if re.match(r"(print|exec)\s+[^\s=(]", text) or re.match(
        r"except\s+[\w.]+\s*,\s*\w+\s*:", text
    ):
        return f"Python 2 (line {error.lineno}: {text}); run 2to3 on it first"
    line = f" in line {error.lineno}" if error.lineno else ""
    return f"syntax error{line}: {error.msg}"
