"""Python files and notebooks: found, read and parsed, and what each says."""

from __future__ import annotations

import ast
import bisect
import dataclasses
import functools
import io
import os
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from hookbridge import errors
from hookbridge.ground.arguments import why_no_file
from hookbridge.ground.imports.extras import is_installed
from hookbridge.old_programs.reading.names import guards, starred
from hookbridge.old_programs.reading.names.bound_names import Names
from hookbridge.old_programs.reading.names.conditions import Conditions
from hookbridge.old_programs.reading.names.import_statements import (
    imports,
    loaded_module,
)
from hookbridge.old_programs.reading.names.named_uses import (
    libraries_of,
    own_members,
    uses,
)
from hookbridge.old_programs.reading.one_file.arrays import Arrays
from hookbridge.old_programs.reading.one_file.comments import Comment, comments_in
from hookbridge.old_programs.reading.one_file.evidence import Evidence, Use, examine
from hookbridge.old_programs.reading.one_file.notebooks import Notebook, parse
from hookbridge.old_programs.reading.one_file.python2 import FROM_PYTHON_2, is_python_2
from hookbridge.old_programs.reading.one_file.unequal_rows import UnequalRows
from hookbridge.tf1_names.parsing import parse_source
from hookbridge.tf1_names.resolution import resolve
from hookbridge.tf1_names.target import NEWEST, Target

MAX_BYTES = 5_000_000
SUFFIXES = (".py", ".ipynb")
# What can be imported where it was, whatever the file means by it.
_THERE = frozenset({"PRIVATE", "KERAS2_NAME"})
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
# Folders that hold no code of the user's own.
SKIPPED = frozenset({".git", ".hg", ".venv", "venv", "__pycache__", "node_modules"})


class Module:
    """The code of one file; the cells of a notebook are one module.

    `file` is the path as it was given or found; `text` has the file's own line ends.
    """

    def __init__(
        self,
        text: str,
        file: str = "",
        content: bytes = b"",
        encoding: str = "utf-8",
        notebook: Notebook | None = None,
    ) -> None:
        self.text: str = text
        self.file: str = file
        self.content: bytes = content
        self.encoding: str = encoding
        self.notebook: Notebook | None = notebook
        self.tree: ast.Module = parse_source(text)
        # All nodes of the tree; a node comes before the nodes inside it.
        self.nodes: tuple[ast.AST, ...] = tuple(ast.walk(self.tree))
        self.names: Names = Names(self.tree, self.nodes, self.package)
        starred.follow(self.names)

    @functools.cached_property
    def path(self) -> str:
        """The real path."""
        return os.path.realpath(self.file)

    @functools.cached_property
    def lines(self) -> list[str]:
        """The lines of `text`, as Python counts them."""
        return split_lines(self.text)

    @functools.cached_property
    def comments(self) -> tuple[Comment, ...]:
        """The comments of `text`."""
        return tuple(comments_in(self.text))

    @functools.cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Each node of the tree, and the node that holds it."""
        return {c: node for node in self.nodes for c in ast.iter_child_nodes(node)}

    @functools.cached_property
    def arrays(self) -> Arrays:
        """What is known of the values in it."""
        return Arrays(self.parents, self.names.canonical)

    @functools.cached_property
    def rows(self) -> UnequalRows:
        """What is known of the lists in it."""
        return UnequalRows(self.nodes, self.parents)

    @functools.cached_property
    def dotted(self) -> str:
        """The path as a dotted name: `pkg/hooks.py` is `pkg.hooks`."""
        whole = PurePath(os.path.abspath(self.file) if self.file else "")
        parts = whole.with_suffix("").parts if whole.name else ()
        parts = parts[:-1] if parts[-1:] == ("__init__",) else parts
        return ".".join(p for p in parts if p != whole.anchor)

    @property
    def package(self) -> list[str]:
        """The parts of the package that the module is in, or is."""
        parts = self.dotted.split(".")
        return parts if PurePath(self.file).stem == "__init__" else parts[:-1]

    @functools.cached_property
    def conditions(self) -> Conditions:
        """What its conditions about versions come to."""
        return Conditions(self.nodes, self.names)

    @functools.cached_property
    def guarded(self) -> frozenset[int]:
        """The ids of nodes for whose failure the program is prepared."""
        return guards.guarded_nodes(self.nodes, self.conditions, self._is_removed)

    @property
    def unguarded(self) -> Iterator[ast.AST]:
        """The nodes that are not guarded."""
        return (node for node in self.nodes if id(node) not in self.guarded)

    def _is_removed(self, part: ast.AST) -> bool:
        """Return whether a part has a name or a module that is not there today."""
        nodes = list(ast.walk(part))
        for node in nodes:
            for full in (
                *(imported.full for imported in imports(node)),
                loaded_module(node),
            ):
                root = full.partition(".")[0]
                if root and root not in sys.modules and not is_installed(root):
                    return True
        target = Target(NEWEST)
        return any(
            (outcome := resolve(name, target)) is not None
            and outcome.code not in _THERE
            for _, name in uses(nodes, self.names)
        )

    @functools.cached_property
    def evidence(self) -> Evidence:
        """What the file says about the TensorFlow that it was written for."""
        evidence = examine(self.file, self.nodes, self.names, self.guarded)
        if self.notebook is None:
            return evidence
        if self.notebook.old_pins:
            line, text = self.notebook.old_pins[0]
            pin = Use(f"`{text}`", self.file, line)
            evidence = dataclasses.replace(evidence, pin=pin)
        uses: dict[str, Any] = {
            kind: use._replace(
                place=", cell {}, line {}".format(*self.cell_and_line(use.line))
            )
            for kind, use in vars(evidence).items()
            if isinstance(use, Use)
        }
        return dataclasses.replace(evidence, **uses)

    @functools.cached_property
    def words(self) -> frozenset[str]:
        """Every name and string that the module says, but for what its imports bind."""
        names = {n.id for n in self.nodes if isinstance(n, ast.Name)}
        return self.said | self.attributes | names

    @functools.cached_property
    def attributes(self) -> frozenset[str]:
        """Every name that stands behind a dot."""
        return frozenset(n.attr for n in self.nodes if isinstance(n, ast.Attribute))

    @functools.cached_property
    def said(self) -> frozenset[str]:
        """Every string that the module says: `__all__` has names, too."""
        return frozenset(
            node.value
            for node in self.nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )

    @functools.cached_property
    def libraries(self) -> set[str]:
        """The libraries that it imports; see `named_uses.libraries_of`."""
        return libraries_of(self.nodes)

    @functools.cached_property
    def own_members(self) -> Mapping[str, set[str]]:
        """What its classes and objects have; see `named_uses.own_members`."""
        return own_members(self.nodes)

    @property
    def unused_stars(self) -> set[str]:
        """The modules of TensorFlow that it stars, and of which it uses no name."""
        starred_ones = set(filter(starred.is_followed, self.names.scopes.starred))
        return starred_ones - {
            from_star.star for from_star in self.names.given.values()
        }

    @property
    def unread_cells(self) -> list[Unread]:
        """The cells of a notebook that should be Python 3 and are not."""
        broken = self.notebook.broken if self.notebook is not None else {}
        return [Unread(self.file, f"cell {n}: {why(e)}") for n, e in broken.items()]

    def cell_and_line(self, line: int) -> tuple[int, int]:
        """Return the 1-based cell and the line in it; cell 0 for a file of Python."""
        if self.notebook is None:
            return 0, line
        borders = self.notebook.borders
        before = max(bisect.bisect_left(borders, line) - 1, 0)
        return self.notebook.cells[before] + 1, max(line - borders[before], 1)

    def column(self, line: int, offset: int) -> int:
        """Return the 1-based column in characters.

        Args:
          line: the number of the line, from 1.
          offset: Python's offset in it, which counts bytes, from 0.
        """
        before = self.lines[line - 1].encode()[:offset] if offset else b""
        return len(before.decode()) + 1

    def line(self, cell: int, line: int) -> int:
        """Return the line of `text` for a line of a cell: `cell_and_line` reversed."""
        if self.notebook is None or not cell:
            return line
        return self.notebook.borders[self.notebook.cells.index(cell - 1)] + line


@dataclass(frozen=True)
class Unread:
    """A file that could not be read, and why.

    Attributes:
      file: its path, as it was found.
      reason: why, in one line.
      is_apart: whether it was found in a folder and no file that was read imports it.
    """

    file: str
    reason: str
    is_apart: bool = False


def read_module(file: str | os.PathLike[str]) -> Module | Unread:
    """Read and parse a file; return the reason if that is not possible."""
    path, name = Path(file), os.fspath(file)
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            return Unread(name, f"{size} bytes; files over {MAX_BYTES} are not read")
        content = path.read_bytes()
        if path.suffix == ".ipynb":
            text = content.decode("utf-8")
            try:
                notebook = parse(text)
            except ValueError as e:
                return Unread(name, str(e))
            return Module(notebook.text, name, content, "utf-8", notebook)
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return Module(content.decode(encoding), name, content, encoding)
    except SyntaxError as e:
        return Unread(name, why(e))
    except UnicodeDecodeError as e:
        return Unread(name, f"not text in its encoding ({e.encoding}): {e.reason}")
    except (ValueError, LookupError, OSError, RecursionError, MemoryError) as e:
        return Unread(name, f"{type(e).__name__}: {e}")


def find_files(paths: Iterable[str | os.PathLike[str]]) -> Iterator[Path]:
    """Yield the files to read, each once, in a fixed order.

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
        files = _walk(path, earlier) if path.is_dir() else [path]
        for file in files:
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
    """Return the lines that Python counts, with their ends."""
    return _LINES.findall(text)


def why(error: SyntaxError) -> str:
    """Return what is wrong with a file, in a sentence."""
    text = (error.text or "").strip()
    if is_python_2(error):
        return f"Python 2 (line {error.lineno}: {text}); {FROM_PYTHON_2}"
    line = f" in line {error.lineno}" if error.lineno else ""
    return f"syntax error{line}: {error.msg}"
