"""Where a rewrite puts new lines at the top of a module: as a person would."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from hookbridge.old_programs.reading.names.import_statements import (
    Import,
    canonical,
    imports,
)
from hookbridge.old_programs.reading.one_file.modules import split_lines
from hookbridge.old_programs.reading.one_file.notebooks import is_border
from hookbridge.tf1_names.parsing import parse_source

# The number of the statement that a line follows, and the line.
Line = tuple[int, str]


class InsertedLines:
    """New lines for the top of a text.

    Args:
      text: the text.
      own_modules: the modules of its program that it imports.
    """

    def __init__(self, text: str, own_modules: Collection[str]) -> None:
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._is_cut = bool(text) and not text.endswith("\n")
        self._rows = split_lines(text + self._newline if self._is_cut else text)
        self._body: Sequence[ast.stmt] = parse_source(text).body
        self._imported = [_imports_in(statement) for statement in self._body]
        self._own_modules = own_modules
        # The lines before each row.
        self._by_row: defaultdict[int, list[str]] = defaultdict(list)
        self._moved: set[int] = set()  # rows that stand elsewhere now
        self._start = _start(self._body, self._imported)
        # The number of the statement that imports TensorFlow, or of the first one.
        first = _after("tensorflow", self._imported, last=False)
        self._place = first or self._start

    def put(self, lines: Iterable[Line]) -> None:
        """Add lines; of two for one place the earlier one stands first."""
        for number, line in lines:
            self._by_row[self._row_after(number)].append(line)

    def _row_after(self, number: int) -> int:
        """Return the row that follows the statement with a number.

        0 is before all of them.
        """
        if number:
            return self._body[number - 1].end_lineno or 0
        first = self._body[0] if self._body else None
        above = [first, *getattr(first, "decorator_list", [])] if first else []
        return min((node.lineno - 1 for node in above), default=len(self._rows))

    def put_first(self, wanted: Sequence[str]) -> None:
        """Add lines before all other imports, behind such lines already there."""
        numbers = {line: _early(line, self._body, self._imported) for line in wanted}
        first = max([self._start, *numbers.values()])
        lines = [
            (first, self._moved_line(line) or line)
            for line, number in numbers.items()
            if not number
        ]
        if lines and self._start and first == self._start:
            lines.insert(0, (self._start, ""))
        self.put(lines)

    def _moved_line(self, line: str) -> str:
        """Take away a line that stands below, and return it; empty if there is none."""
        wanted = ast.dump(parse_source(line).body[0])
        same = [n for n, s in enumerate(self._body, 1) if ast.dump(s) == wanted]
        return self._take_out(same) if _is_import(line) else ""

    def put_imports(self, wanted: Mapping[str, str]) -> None:
        """Add imports of modules; those at TensorFlow's keep the order of its block.

        Args:
          wanted: `{name: module}`.
        """
        after = min(self._place, _first_use(self._body, wanted))
        for name, module in wanted.items():
            line = _line(name, module)
            number = self._in_order(module, after) if line[:6] == "import" else after
            is_before = number < after
            row = self._body[number].lineno - 1 if is_before else self._row_after(after)
            self._by_row[row].append(line)

    def _in_order(self, module: str, place: int) -> int:
        """Return the statement of a block in order that an import precedes.

        Else its place.

        One import alone is in no order.
        """
        first = place
        while first > self._start and self._is_in_block(first - 1, first < place):
            first -= 1
        names = [self._imported[number][0].full for number in range(first, place)]
        if len(names) < 2 or names != sorted(names, key=str.lower):
            return place
        return first + sum(name.lower() < module.lower() for name in names)

    def _is_in_block(self, number: int, is_followed: bool) -> bool:
        """Return whether a statement and the next line each import one package."""
        statement = self._body[number]
        if not isinstance(statement, ast.Import) or len(statement.names) > 1:
            return False
        if statement.names[0].name.partition(".")[0] in sys.stdlib_module_names:
            return False
        following = self._body[number + 1] if is_followed else None
        return following is None or following.lineno == statement.lineno + 1

    def switch_lines(
        self, switch: str, bound: Mapping[str, str], wanted: dict[str, str]
    ) -> list[Line]:
        """Return the call that switches, and the import that it needs by then.

        Args:
          switch: the call.
          bound: `{name: module}` of the imports that are there.
          wanted: the same of those that are to be added; one may be taken from it.
        """
        name = switch.partition(".")[0]
        if name in wanted and _is_keras(self._imported, self._place):
            self._place -= 1  # what Keras imports depends on the switch
        binding = self._imports_of(name)
        after = self._behind_imports(binding)
        number_before = self._before_own_modules(after)
        if any(number <= number_before for number in binding):
            return [(number_before, switch)]
        if number_before == after and name in wanted:
            return [(number_before, switch)]
        module = wanted.pop(name, "") or bound[name]
        is_same = bool(binding) and self._imported[binding[0] - 1][0].full == module
        line = (self._take_out(binding) if is_same else "") or _line(name, module)
        return [(number_before, line), (number_before, switch)]

    def _imports_of(self, name: str) -> list[int]:
        """Return the numbers, from 1, of the statements that import a name."""
        rows = enumerate(self._imported, 1)
        return [n for n, row in rows if any(import_.bound == name for import_ in row)]

    def _behind_imports(self, binding: Sequence[int]) -> int:
        """Return the place behind the import of a name, if it follows imports alone."""
        if binding and all(self._imported[self._place : binding[0]]):
            return max(self._place, binding[0])
        return self._place

    def _before_own_modules(self, place: int) -> int:
        """Return a place, or one before it where the first own module is imported.

        The program's own modules may already use what is switched.
        """
        is_own = [any(map(self._is_own, row)) for row in self._imported]
        return min(is_own.index(True), place) if True in is_own else place

    def _take_out(self, binding: Sequence[int]) -> str:
        """Take an import away that has a line of its own; return the line."""
        statement = self._body[binding[0] - 1] if binding else None
        if not isinstance(statement, ast.Import) or len(statement.names) > 1:
            return ""
        row = statement.lineno - 1
        if statement.col_offset or row != (statement.end_lineno or 0) - 1:
            return ""
        if self._rows[row][statement.end_col_offset or 0 :].partition("#")[0].strip():
            return ""
        self._moved.add(row)
        return self._rows[row].rstrip("\r\n")

    def _is_own(self, one: Import) -> bool:
        """Return whether an import is one of another module of the program."""
        return one.full.partition(".")[0] in ("", *self._own_modules) or any(
            name in self._own_modules
            for name in (one.full, one.full.rpartition(".")[0])
        )

    def text(self) -> str:
        """Return the text with the lines.

        A blank one stands after what is not an import.
        """
        rows: list[str | None] = [*self._rows]
        for row in self._moved:
            rows[row] = None
        for row, lines in sorted(self._by_row.items(), reverse=True):
            spaced = list(_with_blank_lines(lines, self._is_code(row)))
            rows[row:row] = [f"{line}{self._newline}" for line in spaced]
        text = "".join(row for row in rows if row is not None)
        return text.removesuffix(self._newline) if self._is_cut else text

    def _is_code(self, row: int) -> bool:
        """Return whether the row after a new line has something, in its cell."""
        left = [n for n in range(row, len(self._rows)) if n not in self._moved]
        if not left or not self._rows[left[0]].strip():
            return False
        borders = {node.lineno - 1 for node in self._body if is_border(node)}
        return left[0] not in borders


def _with_blank_lines(lines: Sequence[str], is_followed: bool) -> Iterator[str]:
    """Yield the lines, with a blank one after what is not an import."""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        yield line
        is_before = _is_import(following) or (is_followed and not following)
        if line and not _is_import(line) and is_before:
            yield ""


def _is_import(line: str) -> bool:
    return line.startswith(("import ", "from "))


def _line(name: str, module: str) -> str:
    parent, _, attribute = module.rpartition(".")
    if name == module:
        return f"import {module}"
    if name == attribute and parent:
        return f"from {parent} import {attribute}"
    return f"import {module} as {name}"


def _start(body: Sequence[ast.stmt], imported: Sequence[list[Import]]) -> int:
    """Return the number of statements that nothing may stand before."""
    future = _after("__future__", imported)
    if body and is_border(body[0]):
        # `__future__` stays first in the script that a notebook is exported to.
        is_in_first_cell = sum(map(is_border, body[:future])) == 1
        return future if is_in_first_cell else 0
    has_text = body and isinstance(getattr(body[0], "value", None), ast.Constant)
    return future or int(bool(has_text))


def _imports_in(statement: ast.stmt) -> list[Import]:
    """Return what a statement at the top imports."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return []
    return [import_ for node in ast.walk(statement) for import_ in imports(node)]


def _after(
    package: str, imported: Iterable[Sequence[Import]], last: bool = True
) -> int:
    """Return the number of the statement after the imports of a package."""
    places = [
        number
        for number, imports_there in enumerate(imported, 1)
        if any(import_.full.startswith(package) for import_ in imports_there)
    ]
    return places[-1 if last else 0] if places else 0


def _is_keras(imported: Sequence[list[Import]], number: int) -> bool:
    """Return whether the statement with a number imports Keras from TensorFlow."""
    imports_there = imported[number - 1] if number else ()
    modules = [import_.full for import_ in imports_there]
    return any(canonical(m).endswith(".keras") or ".keras." in m for m in modules)


def _early(
    line: str, body: Sequence[ast.stmt], imported: Iterable[Sequence[Import]]
) -> int:
    """Return the number of the statement after a line before all packages."""
    known = sys.stdlib_module_names
    wanted = ast.dump(parse_source(line).body[0])
    pairs = zip(body, imported, strict=True)
    for number, (statement, imports_there) in enumerate(pairs, 1):
        if ast.dump(statement) == wanted:
            return number
        if any(i.full.partition(".")[0] not in known for i in imports_there):
            return 0
    return 0


def _first_use(body: Sequence[ast.stmt], names: Collection[str]) -> int:
    """Return the number of the first statement that has one of the names."""
    uses = (
        number
        for number, statement in enumerate(body)
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and node.id in names
    )
    return next(uses, len(body))
