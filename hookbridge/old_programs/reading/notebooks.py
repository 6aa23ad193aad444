"""The code cells of a notebook as one text of Python, and back.

The cells share their names, so the rules see them as one module. In this module the
border of a cell and a line of IPython's own (`%matplotlib inline`, `!pip ...`) are
imports of names that nobody uses; the user sees `# cell 3` and the line itself.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from typing import Any

_CELL = "__hookbridge_cell_{}__"
_LINE = "__hookbridge_line_{}__"
_BORDER = re.compile(r"^# cell (\d+)\n", re.M)
_IPYTHON = ("%", "!", "?")


@dataclass(frozen=True)
class Notebook:
    """A notebook that was read."""

    document: Any  # its parsed JSON
    text: str  # the code of its cells, with the borders and IPython's lines as imports
    cells: tuple[int, ...]  # the 0-based numbers of the cells in `text`, in order
    borders: tuple[int, ...]  # the 1-based line of `text` before each of these cells
    lines: tuple[str, ...]  # IPython's own lines
    # The arguments of `json.dumps` that write the file as it was.
    layout: dict[str, Any]
    end: str  # what follows the JSON

    def shown(self, text: str) -> str:
        """A text of all cells as the user sees it, without the imports."""
        text = re.sub(
            r"^import __hookbridge_cell_(\d+)__$", r"# cell \1", text, flags=re.M
        )
        name = re.compile(r"import __hookbridge_line_(\d+)__")
        return name.sub(lambda match: self.lines[int(match[1])], text)

    def with_code(self, shown: str) -> str:
        """The notebook's JSON with other code; outputs and metadata stay."""
        first, *parts = _BORDER.split(shown)
        numbers = [int(number) - 1 for number in parts[::2]]
        codes = dict(zip(numbers, parts[1::2], strict=True))
        if first or numbers != list(self.cells):
            raise ValueError("its cells cannot be distinguished; rewrite them by hand")
        document = json.loads(json.dumps(self.document))
        for number, code in codes.items():
            cell = document["cells"][number]
            before = cell.get("source", "")
            if not "".join(before).endswith("\n"):
                code = code.removesuffix("\n")
            if code != "".join(before):
                is_list = isinstance(before, list)
                cell["source"] = code.splitlines(keepends=True) if is_list else code
        return json.dumps(document, **self.layout) + self.end


def parse(text: str) -> Notebook:
    """Reads the JSON of a notebook.

    Cells that begin with a cell magic (`%%bash`) or are not Python 3 stay as they are.
    """
    document = json.loads(text)
    if not isinstance(document, dict) or not isinstance(document.get("cells"), list):
        raise ValueError("not a notebook of format 4: it has no list `cells`")
    lines: list[str] = []
    codes: dict[int, str] = {}
    for number, cell in enumerate(document["cells"]):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            code = _as_python(_source(cell, number), lines)
            if code is not None:
                codes[number] = code
    parts, borders, line = [], [], 1
    for number, code in codes.items():
        parts.append(f"import {_CELL.format(number + 1)}\n{code}")
        borders.append(line)
        line += parts[-1].count("\n")
    cells, joined = (tuple(codes), tuple(borders), tuple(lines)), "".join(parts)
    return Notebook(document, joined, *cells, *_layout(text))


def _source(cell: dict[str, Any], number: int) -> str:
    source = cell.get("source", "")
    held = source if isinstance(source, list) else [source]
    if not all(isinstance(line, str) for line in held):
        raise ValueError(f"the source of its cell {number + 1} is no text")
    return "".join(held)


def _as_python(code: str, lines: list[str]) -> str | None:
    """A cell's code with imports for IPython's lines; None for a cell that stays."""
    if "__hookbridge_" in code or _BORDER.search(code + "\n") or "\r" in code:
        return None
    code = code if code.endswith("\n") or not code else f"{code}\n"
    if _parses(code):
        return code
    written = []
    for line in code.split("\n"):
        stripped = line.lstrip()
        if stripped.startswith(_IPYTHON) and not stripped.startswith("%%"):
            name = _LINE.format(len(lines))
            lines.append(stripped)
            line = f"{line[: len(line) - len(stripped)]}import {name}"
        written.append(line)
    changed = "\n".join(written)
    return changed if _parses(changed) else None


def _parses(code: str) -> bool:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError):
        return False
    return True


def _layout(text: str) -> tuple[dict[str, Any], str]:
    """How the file writes its JSON, and what follows it."""
    indent = re.match(r"\{\n([ \t]+)", text)
    layout = {"indent": indent[1] if indent else None}
    return {**layout, "ensure_ascii": text.isascii()}, text[len(text.rstrip()) :]
