"""Python files and notebooks under the paths that are scanned."""

from __future__ import annotations

import ast
import json
import os
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hookbridge import errors
from hookbridge.migrate.findings import Unread

MAX_BYTES = 5_000_000
SUFFIXES = (".py", ".ipynb")
# Folders that hold no code of the user's own.
SKIPPED = frozenset({".git", ".hg", ".venv", "venv", "__pycache__", "node_modules"})


@dataclass(frozen=True)
class Source:
    """The code of one file, or of one cell of a notebook.

    Attributes:
      file: the path.
      cell: 1-based number of the cell; 0 for a file of Python.
      text: the code.
      tree: its syntax tree.
      nodes: all nodes of the tree; a node comes before the nodes inside it.
    """

    file: str
    cell: int
    text: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]


def find_files(paths: Iterable[str | os.PathLike[str]]) -> Iterator[Path]:
    """The files to read, each once, in a fixed order.

    A file is taken whatever its suffix is; a folder gives its Python files and
    notebooks. Links are followed; each real file and folder is taken once.

    Raises:
      errors.InvalidArgumentError: a path does not exist.
    """
    seen: set[str] = set()
    for path in map(Path, paths):
        if path.is_file():
            yield from _new([path], seen)
        elif path.is_dir():
            yield from _walk(path, seen)
        else:
            raise errors.InvalidArgumentError(
                f"Received {os.fspath(path)!r}, which does not exist; expected Python "
                "files, notebooks or folders of them."
            )


def _walk(top: Path, seen: set[str]) -> Iterator[Path]:
    for folder, folders, files in os.walk(top, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()  # a loop of links, or a path that was given twice
            continue
        seen.add(real)
        folders[:] = sorted(set(folders) - SKIPPED)
        found = (Path(folder, f) for f in sorted(files) if f.endswith(SUFFIXES))
        yield from _new(found, seen)


def _new(paths: Iterable[Path], seen: set[str]) -> Iterator[Path]:
    """The files that were not given before, by this name or another."""
    for path in paths:
        real = os.path.realpath(path)
        if real not in seen:
            seen.add(real)
            yield path


def read(path: Path) -> list[Source] | Unread:
    """Parses a file; a notebook gives a source for each cell of code."""
    name = os.fspath(path)
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            return Unread(name, f"{size} bytes; files over {MAX_BYTES} are not read")
        if path.suffix == ".ipynb":
            cells = _cells(path)
        else:
            with tokenize.open(path) as file:
                cells = [(0, file.read())]
        return [parsed(name, cell, text) for cell, text in cells]
    except SyntaxError as e:
        return Unread(name, why(e))
    except UnicodeDecodeError as e:
        return Unread(name, f"not text in its encoding ({e.encoding}): {e.reason}")
    except (ValueError, LookupError, OSError, RecursionError, MemoryError) as e:
        return Unread(name, f"{type(e).__name__}: {e}")


def parsed(file: str, cell: int, text: str) -> Source:
    """Parses a text.

    Raises:
      SyntaxError, ValueError: it is no Python 3.
    """
    with warnings.catch_warnings():
        # Old code has escapes in strings that newer Pythons warn of.
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    return Source(file, cell, text, tree, tuple(ast.walk(tree)))


def why(error: SyntaxError) -> str:
    """What is wrong with a file, in a sentence."""
    text = (error.text or "").strip()
    if text.startswith(("print ", "exec ")) or ("except " in text and "," in text):
        return f"Python 2 (line {error.lineno}: {text}); run 2to3 on it first"
    return f"syntax error in line {error.lineno}: {error.msg}"


def _cells(path: Path) -> list[tuple[int, str]]:
    document = json.loads(path.read_text("utf-8"))
    if not isinstance(document, dict) or not isinstance(document.get("cells"), list):
        raise ValueError("not a notebook of format 4: it has no list `cells`")
    found = []
    for number, cell in enumerate(document["cells"], start=1):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            code = "".join(cell.get("source", ""))
            found.append((number, _without_magics(code)))
    return found


def _without_magics(code: str) -> str:
    """The code with `pass` for each line of IPython, so that line numbers stay."""
    if code.lstrip().startswith("%%"):
        return ""
    lines = code.split("\n")
    return "\n".join(
        f"{line[: len(line) - len(line.lstrip())]}pass"
        if line.lstrip().startswith(("%", "!", "?"))
        else line
        for line in lines
    )
