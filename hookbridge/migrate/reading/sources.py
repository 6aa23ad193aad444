"""Python files and notebooks: found, read and parsed."""

from __future__ import annotations

import ast
import bisect
import io
import os
import re
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hookbridge import errors
from hookbridge.arguments import why_no_file
from hookbridge.migrate.findings import Unread
from hookbridge.migrate.reading import notebooks

MAX_BYTES = 5_000_000
SUFFIXES = (".py", ".ipynb")
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
# Folders that hold no code of the user's own.
SKIPPED = frozenset({".git", ".hg", ".venv", "venv", "__pycache__", "node_modules"})


@dataclass(frozen=True, eq=False)
class Source:
    """The code of one file; the cells of a notebook are one module."""

    file: str  # the path, as it was given or found
    text: str  # the code, with the file's own line ends
    tree: ast.Module
    # All nodes of the tree; a node comes before the nodes inside it.
    nodes: tuple[ast.AST, ...]
    content: bytes = b""
    # Their encoding; "utf-8-sig" for a file with a byte order mark.
    encoding: str = "utf-8"
    # The notebook that the code is from; None for a file of Python.
    notebook: notebooks.Notebook | None = None

    def place(self, line: int) -> tuple[int, int]:
        """The 1-based cell and the line in it; cell 0 for a file of Python."""
        if self.notebook is None:
            return 0, line
        borders = self.notebook.borders
        before = max(bisect.bisect_left(borders, line) - 1, 0)
        return self.notebook.cells[before] + 1, max(line - borders[before], 1)

    def line(self, cell: int, line: int) -> int:
        """The line of `text` for a line of a cell; the reverse of `place`."""
        if self.notebook is None or not cell:
            return line
        return self.notebook.borders[self.notebook.cells.index(cell - 1)] + line


def find_files(paths: Iterable[str | os.PathLike[str]]) -> Iterator[Path]:
    """The files to read, each once, in a fixed order.

    A file is taken whatever its suffix is; a folder gives its Python files and
    notebooks. Links are followed; each real file and folder is taken once.
    """
    earlier: set[str] = set()
    for path in map(Path, paths):
        if path.is_file():
            yield from _new([path], earlier)
        elif path.is_dir():
            yield from _walk(path, earlier)
        else:
            raise errors.InvalidArgumentError(
                f"Received {os.fspath(path)!r}, which {why_no_file(path)}; expected "
                "Python files, notebooks or folders of them."
            )


def _walk(top: Path, earlier: set[str]) -> Iterator[Path]:
    for folder, folders, files in os.walk(top, followlinks=True):
        real = os.path.realpath(folder)
        if real in earlier:
            folders.clear()  # a loop of links, or a path that was given twice
            continue
        earlier.add(real)
        folders[:] = sorted(set(folders) - SKIPPED)
        inside = (Path(folder, f) for f in sorted(files) if f.endswith(SUFFIXES))
        yield from _new(inside, earlier)


def _new(paths: Iterable[Path], earlier: set[str]) -> Iterator[Path]:
    """The files that were not given before, by this name or another."""
    for path in paths:
        real = os.path.realpath(path)
        if real not in earlier:
            earlier.add(real)
            yield path


def read(path: Path) -> Source | Unread:
    """Reads and parses a file; returns the reason if that is not possible."""
    name = os.fspath(path)
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            return Unread(name, f"{size} bytes; files over {MAX_BYTES} are not read")
        content = path.read_bytes()
        if path.suffix == ".ipynb":
            notebook = notebooks.parse(content.decode("utf-8"))
            return parsed(name, notebook.text, content, "utf-8", notebook)
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return parsed(name, content.decode(encoding), content, encoding)
    except SyntaxError as e:
        return Unread(name, why(e))
    except UnicodeDecodeError as e:
        return Unread(name, f"not text in its encoding ({e.encoding}): {e.reason}")
    except (ValueError, LookupError, OSError, RecursionError, MemoryError) as e:
        return Unread(name, f"{type(e).__name__}: {e}")


def parsed(
    file: str,
    text: str,
    content: bytes = b"",
    encoding: str = "utf-8",
    notebook: notebooks.Notebook | None = None,
) -> Source:
    """Parses a text."""
    with warnings.catch_warnings():
        # Old code has escapes in strings that newer Pythons warn of.
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    nodes = tuple(ast.walk(tree))
    return Source(file, text, tree, nodes, content, encoding, notebook)


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
