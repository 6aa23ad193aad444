"""The code cells of a notebook as one text of Python, and back.

The cells share their names, so the rules see them as one module. In this module the
border of a cell and what is IPython's own (`%matplotlib inline`, `!pip ...`) are names
that nobody binds; the user sees `# cell 3` and the line itself.
"""

from __future__ import annotations

import ast
import copy
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_CELL = "__hookbridge_cell_{}__"
_LINE = "__hookbridge_line_{}__"
_BORDER = re.compile(r"^__hookbridge_cell_(\d+)__\n", re.M)
_MARK = re.compile(r"__hookbridge_line_(\d+)__")
_IPYTHON = ("%", "!", "?")
# `files = !ls` and `took = %timeit -o f()`.
_ASSIGNED = re.compile(r"(\s*[\w.,\[\]'\" ]+=\s*)([!%].*)")
_HELP = re.compile(r"\s*%{0,2}[\w.*]+\?{1,2}\s*")
# Cell magics whose cell is Python that shares the names of the notebook.
_PYTHON_MAGICS = frozenset({"capture", "prun", "time", "timeit"})
_VERSION_1 = r"(?:(?:[=~]=|<=?)\s*1\b|<\s*2(?:\.0)*(?![.\d]))"
# A line that asks for TensorFlow 1.
_OLD_PIN = re.compile(
    r"%tensorflow_version\s+1"
    r"|%load_ext\s+hookbridge\b"
    r"|[!%]\s*(?:\S+ -m )?pip3?\s+install\b.*\btensorflow(?:[-_][cg]pu)?\s*"
    + _VERSION_1
)


@dataclass(frozen=True)
class Cell:
    """One cell of code, as the notebook has it."""

    number: int  # 1-based, of all cells of the notebook
    source: str
    may_fail: bool  # whether its tags say that an error of it is meant

    @property
    def magic(self) -> str:
        """The name of the cell magic that it begins with, such as `bash`."""
        found = re.match(r"\s*%%(\w+)", self.source)
        return found[1] if found else ""

    def label(self, file: str) -> str:
        """What a traceback names as the file of its code."""
        return f"{file}, cell {self.number}"

    @property
    def is_python(self) -> bool:
        """Whether it is Python that shares its names with the other cells."""
        return not self.magic or self.magic in _PYTHON_MAGICS


@dataclass(frozen=True)
class Notebook:
    """A notebook that was read."""

    document: Any  # its parsed JSON
    code: tuple[Cell, ...]  # its cells of code
    text: str  # the code of its cells, with names for borders and IPython's lines
    cells: tuple[int, ...]  # the 0-based numbers of the cells in `text`, in order
    borders: tuple[int, ...]  # the 1-based line of `text` before each of these cells
    lines: tuple[str, ...]  # IPython's own lines
    # Number of a cell that should be Python and is not -> what is wrong with it.
    broken: Mapping[int, SyntaxError]
    # The arguments of `json.dumps` that write the file as it was.
    layout: dict[str, Any]
    end: str  # what follows the JSON

    @property
    def uses_ipython(self) -> Cell | None:
        """The first cell that plain Python cannot run; None without one."""
        marked = {int(number) for number in _cells_with_marks(self.text)}
        for cell in self.code:
            if not cell.is_python or cell.number in marked:
                return cell
        return None

    @property
    def old_pins(self) -> tuple[tuple[int, str], ...]:
        """The lines of `text` that ask for TensorFlow 1, and how they do."""
        found = []
        for number, row in enumerate(self.text.split("\n"), 1):
            for mark in _MARK.finditer(row):
                line = self.lines[int(mark[1])]
                if _OLD_PIN.match(line):
                    found.append((number, line))
        return tuple(found)

    def shown(self, text: str) -> str:
        """A text of all cells as the user sees it."""
        return self._with_lines(_BORDER.sub(r"# cell \1\n", text))

    def _with_lines(self, text: str) -> str:
        return _MARK.sub(lambda match: self.lines[int(match[1])], text)

    def with_code(self, text: str) -> str:
        """The notebook's JSON with other code; outputs and metadata stay.

        What stands before the first border goes into a cell of its own.
        """
        first, *parts = _BORDER.split(text)
        numbers = [int(number) - 1 for number in parts[::2]]
        if numbers != list(self.cells):
            raise ValueError("its cells cannot be distinguished; rewrite them by hand")
        document = copy.deepcopy(self.document)
        for number, code in zip(numbers, parts[1::2], strict=True):
            _put(document["cells"][number], self._with_lines(code))
        if first:
            place = self.code[0].number - 1
            new = _new_cell(document, document["cells"][place], self._with_lines(first))
            document["cells"].insert(place, new)
        return json.dumps(document, **self.layout) + self.end


def parse(text: str) -> Notebook:
    """Reads the JSON of a notebook.

    Cells in other languages (`%%bash`) stay as they are.
    """
    document = json.loads(text)
    if not isinstance(document, dict) or not isinstance(document.get("cells"), list):
        raise ValueError("not a notebook of format 4: it has no list `cells`")
    language = _language(document)
    if language.lower() not in ("", "python", "ipython"):
        raise ValueError(f"a notebook of {language}, not of Python")
    found = list(_code_cells(document["cells"]))
    lines: list[str] = []
    broken: dict[int, SyntaxError] = {}
    parts, numbers, borders, line = [], [], [], 1
    for one in found:
        code = _as_python(one.source, lines) if one.is_python else None
        if isinstance(code, str):
            parts.append(f"{_CELL.format(one.number)}\n{code}")
            numbers.append(one.number - 1)
            borders.append(line)
            line += parts[-1].count("\n")
        elif code is not None:
            broken[one.number] = code
    whole, cells = "".join(parts), (tuple(numbers), tuple(borders), tuple(lines))
    return Notebook(document, tuple(found), whole, *cells, broken, *_layout(text))


def _code_cells(cells: list[Any]) -> Iterator[Cell]:
    """The cells with code, by the numbers that they have among all cells."""
    for number, cell in enumerate(cells, 1):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            tags = (cell.get("metadata") or {}).get("tags") or ()
            yield Cell(number, _source(cell, number), "raises-exception" in tags)


def is_border(node: ast.AST) -> bool:
    """Whether a statement is the border of a cell."""
    name = getattr(getattr(node, "value", None), "id", "")
    return isinstance(node, ast.Expr) and bool(_BORDER.match(f"{name}\n"))


def _cells_with_marks(text: str) -> list[str]:
    """The numbers of the cells in which lines of IPython stand."""
    _, *parts = _BORDER.split(text)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [number for number, code in pairs if _MARK.search(code)]


def _language(document: dict[str, Any]) -> str:
    metadata = document.get("metadata") or {}
    named = metadata.get("language_info") or {}
    spec = metadata.get("kernelspec") or {}
    return str(named.get("name") or spec.get("language") or "")


def _source(cell: dict[str, Any], number: int) -> str:
    source = cell.get("source", "")
    held = source if isinstance(source, list) else [source]
    if not all(isinstance(line, str) for line in held):
        raise ValueError(f"the source of its cell {number} is no text")
    return "".join(held)


def _put(cell: dict[str, Any], code: str) -> None:
    """Gives a cell other code, with the line ends and in the form of the old one."""
    before = cell.get("source", "")
    old = "".join(before)
    if not old.endswith("\n"):
        code = code.removesuffix("\n")
    if code != _plain(old):
        code = code.replace("\n", "\r\n") if "\r\n" in old else code
        is_list = isinstance(before, list)
        cell["source"] = code.splitlines(keepends=True) if is_list else code


def _new_cell(document: Any, like: dict[str, Any], code: str) -> dict[str, Any]:
    """A cell with some code, in the form of another one."""
    new: dict[str, Any] = {"cell_type": "code", "execution_count": None}
    new |= {"metadata": {}, "outputs": []}
    if "id" in like:
        taken = {cell.get("id") for cell in document["cells"]}
        names = ("hookbridge", *(f"hookbridge-{n}" for n in range(len(taken))))
        new["id"] = next(name for name in names if name not in taken)
    source = code.removesuffix("\n").splitlines(keepends=True)
    is_list = isinstance(like.get("source"), list)
    return {**new, "source": source if is_list else "".join(source)}


def _plain(code: str) -> str:
    """A cell's code with plain line ends, and without an indent that IPython drops."""
    code = code.replace("\r\n", "\n")
    indent = re.match(r"[ \t]*", code)
    return re.sub(f"^{indent[0]}", "", code, flags=re.M) if indent else code


def _as_python(code: str, lines: list[str]) -> str | SyntaxError:
    """A cell's code with names for IPython's lines, or what is wrong with it."""
    code = _plain(code)
    if "__hookbridge_" in code or "\r" in code:
        return SyntaxError("a carriage return alone, or a name of hookbridge's own")
    code = code if code.endswith("\n") or not code else f"{code}\n"
    taken, rows, error = len(lines), code.split("\n"), _error(code)
    # `% x` may begin a line of Python too, so only lines at which Python stops change.
    while error is not None and 0 < (error.lineno or 0) <= len(rows):
        if not _replace(rows, error.lineno or 1, lines):
            break
        error = _error("\n".join(rows))
    if error is None:
        return "\n".join(rows)
    del lines[taken:]
    return error


def _replace(rows: list[str], place: int, lines: list[str]) -> bool:
    """Puts a name for what is IPython's in a line; returns whether there is something.

    A line that ends with a backslash takes the next one along.
    """
    row = rows[place - 1]
    stripped = row.lstrip()
    before, own = row[: len(row) - len(stripped)], stripped
    if found := _ASSIGNED.fullmatch(row):
        before, own = found[1], found[2]
    elif not (stripped.startswith(_IPYTHON) or _HELP.fullmatch(row)):
        return False
    while True:
        rows[place - 1] = before + _LINE.format(len(lines))
        lines.append(own)
        if not own.endswith("\\") or before.strip() or place == len(rows):
            return True
        place += 1
        own = rows[place - 1].removeprefix(before)


def _error(code: str) -> SyntaxError | None:
    try:
        ast.parse(code)
    except SyntaxError as e:
        return e
    except ValueError as e:  # a null byte, before Python 3.12
        return SyntaxError(str(e))
    return None


def _layout(text: str) -> tuple[dict[str, Any], str]:
    """How the file writes its JSON, and what follows it."""
    indent = re.match(r"\{\n([ \t]+)", text)
    layout = {"indent": indent[1] if indent else None}
    return {**layout, "ensure_ascii": text.isascii()}, text[len(text.rstrip()) :]
