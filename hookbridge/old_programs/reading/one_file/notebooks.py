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

from hookbridge.old_programs.reading.one_file import ipython_lines
from hookbridge.old_programs.reading.one_file.ipython_lines import (
    as_python,
    has_lines,
    plain,
    with_lines,
)

_CELL = "__hookbridge_cell_{}__"
_BORDER = re.compile(r"^__hookbridge_cell_(\d+)__\n", re.M)
# Cell magics whose cell is Python that shares the names of the notebook.
_PYTHON_MAGICS = frozenset({"capture", "prun", "time", "timeit"})


@dataclass(frozen=True)
class Cell:
    """One cell of code, as the notebook has it."""

    number: int  # 1-based, of all cells of the notebook
    source: str
    may_fail: bool  # whether its tags say that an error of it is meant

    @property
    def magic(self) -> str:
        """The name of the cell magic that it begins with, such as `bash`."""
        match = re.match(r"\s*%%(\w+)", self.source)
        return match[1] if match else ""

    def label(self, file: str) -> str:
        """Return what a traceback names as the file of its code."""
        return f"{file}, cell {self.number}"

    @property
    def is_python(self) -> bool:
        """Return whether it is Python that shares its names with the other cells."""
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
        _, *parts = _BORDER.split(self.text)
        pairs = zip(parts[::2], parts[1::2], strict=True)
        marked = {int(number) for number, code in pairs if has_lines(code)}
        cells = (c for c in self.code if not c.is_python or c.number in marked)
        return next(cells, None)

    @property
    def old_pins(self) -> tuple[tuple[int, str], ...]:
        """The lines of `text` that ask for TensorFlow 1, and how they do."""
        return tuple(ipython_lines.old_pins(self.text, self.lines))

    @property
    def packages(self) -> frozenset[str]:
        """What IPython's own lines import."""
        return frozenset(ipython_lines.packages(self.lines))

    def shown(self, text: str) -> str:
        """Return a text of all cells as the user sees it."""
        return with_lines(_BORDER.sub(r"# cell \1\n", text), self.lines)

    def with_code(self, text: str) -> str:
        """Return the notebook's JSON with other code; outputs and metadata stay.

        What stands before the first border goes into a cell of its own.
        """
        first, *parts = _BORDER.split(text)
        numbers = [int(number) - 1 for number in parts[::2]]
        if numbers != list(self.cells):
            raise ValueError("its cells cannot be distinguished; rewrite them by hand")
        document = copy.deepcopy(self.document)
        for number, code in zip(numbers, parts[1::2], strict=True):
            _put(document["cells"][number], with_lines(code, self.lines))
        if first:
            index = self.code[0].number - 1
            code = with_lines(first, self.lines)
            new = _new_cell(document, document["cells"][index], code)
            document["cells"].insert(index, new)
        return json.dumps(document, **self.layout) + self.end


def parse(text: str) -> Notebook:
    """Read the JSON of a notebook.

    Cells in other languages (`%%bash`) stay as they are.

    Raises:
      ValueError: it is not a notebook of Python; the message says why.
    """
    document = _load_json(text)
    if not isinstance(document, dict) or not isinstance(document.get("cells"), list):
        raise ValueError("not a notebook of format 4: it has no list `cells`")
    language = _language(document)
    if language.lower() not in ("", "python", "ipython"):
        raise ValueError(f"a notebook of {language}, not of Python")
    code = tuple(_code_cells(document["cells"]))
    lines: list[str] = []
    broken: dict[int, SyntaxError] = {}
    whole = ""
    numbers: list[int] = []
    borders: list[int] = []
    for cell in code:
        python = as_python(cell.source, lines) if cell.is_python else None
        if isinstance(python, str):
            numbers.append(cell.number - 1)
            borders.append(whole.count("\n") + 1)
            whole += f"{_CELL.format(cell.number)}\n{python}"
        elif python is not None:
            broken[cell.number] = python
    layout, end = _layout(text)
    return Notebook(
        document=document,
        code=code,
        text=whole,
        cells=tuple(numbers),
        borders=tuple(borders),
        lines=tuple(lines),
        broken=broken,
        layout=layout,
        end=end,
    )


def _load_json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as e:
        where = f"line {e.lineno}, column {e.colno}"
        raise ValueError(f"invalid JSON in {where} ({e.msg})") from None
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None


def _part(parts: dict[str, Any], name: str, kind: type, owner: str) -> Any:
    """Return a part of the document, which has to be of a kind if it is there."""
    value = parts.get(name) or kind()
    if not isinstance(value, kind):
        expected = "an object" if kind is dict else "a list"
        raise ValueError(f"`{name}` of {owner} is {value!r}, and not {expected}")
    return value


def _code_cells(cells: list[Any]) -> Iterator[Cell]:
    """Yield the cells with code, by the numbers that they have among all cells."""
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict):
            raise ValueError(f"its cell {number} is {cell!r}, and not an object")
        if cell.get("cell_type") == "code":
            metadata = _part(cell, "metadata", dict, f"its cell {number}")
            tags = _part(metadata, "tags", list, f"its cell {number}")
            yield Cell(number, _source(cell, number), "raises-exception" in tags)


def is_border(node: ast.AST) -> bool:
    """Return whether a statement is the border of a cell."""
    name = getattr(getattr(node, "value", None), "id", "")
    return isinstance(node, ast.Expr) and bool(_BORDER.match(f"{name}\n"))


def _language(document: dict[str, Any]) -> str:
    metadata = _part(document, "metadata", dict, "the document")
    named = _part(metadata, "language_info", dict, "its metadata")
    spec = _part(metadata, "kernelspec", dict, "its metadata")
    return str(named.get("name") or spec.get("language") or "")


def _source(cell: dict[str, Any], number: int) -> str:
    source = cell.get("source", "")
    parts = source if isinstance(source, list) else [source]
    if not all(isinstance(line, str) for line in parts):
        raise ValueError(f"the source of its cell {number} is not text")
    return "".join(parts)


def _put(cell: dict[str, Any], code: str) -> None:
    """Give a cell other code, with the line ends and in the form of the old one."""
    before = cell.get("source", "")
    old = "".join(before)
    if not old.endswith("\n"):
        code = code.removesuffix("\n")
    if code != plain(old):
        code = code.replace("\n", "\r\n") if "\r\n" in old else code
        is_list = isinstance(before, list)
        cell["source"] = code.splitlines(keepends=True) if is_list else code


def _new_cell(document: Any, like: dict[str, Any], code: str) -> dict[str, Any]:
    """Return a cell with some code, in the form of another one."""
    new: dict[str, Any] = {"cell_type": "code", "execution_count": None}
    new |= {"metadata": {}, "outputs": []}
    if "id" in like:
        taken = {cell.get("id") for cell in document["cells"]}
        names = ("hookbridge", *(f"hookbridge-{n}" for n in range(len(taken))))
        new["id"] = next(name for name in names if name not in taken)
    source = code.removesuffix("\n").splitlines(keepends=True)
    is_list = isinstance(like.get("source"), list)
    return {**new, "source": source if is_list else "".join(source)}


def _layout(text: str) -> tuple[dict[str, Any], str]:
    """Return how the file writes its JSON, and what follows it."""
    indent = re.match(r"\{\n([ \t]+)", text)
    layout = {"indent": indent[1] if indent else None}
    return {**layout, "ensure_ascii": text.isascii()}, text[len(text.rstrip()) :]
