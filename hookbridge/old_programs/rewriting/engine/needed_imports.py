"""Imports that rewritten code needs."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence

from hookbridge.old_programs.names.parsing import parsed
from hookbridge.old_programs.names.target import Target
from hookbridge.old_programs.reading.import_statements import Import, canonical, imports
from hookbridge.old_programs.reading.modules import Module, split_lines
from hookbridge.old_programs.reading.notebooks import is_border

# Root of a dotted name -> module, and the name it is usually imported as.
_USUAL = {"tf": ("tensorflow", "tf"), "hookbridge": ("hookbridge", "hb")}

_LAST = sys.maxsize


def module_of(root: str) -> str:
    """The module that the root of a living name means."""
    return _USUAL.get(root, (root, root))[0]


class NeededImports:
    """What one module imports at its top level, and what it has to import.

    `own` are the modules of its program that it imports.
    """

    def __init__(self, module: Module, own: Collection[str], target: Target) -> None:
        names = module.names
        self.bound: dict[str, str] = {
            name: value
            for name, value in names.bound.items()
            if name in names.bound_here and name not in names.aliases
        }
        self._nodes = module.nodes
        # The line after which a bound name can be used.
        self._lines: dict[str, int] = {}
        for statement in module.tree.body:
            for one in (o for node in ast.walk(statement) for o in imports(node)):
                self._lines.setdefault(one.bound, statement.lineno)
        self._wanted: dict[str, str] = {}  # name -> module
        self.first: list[str] = []  # lines that stand before every other import
        # A call that stands after the import of TensorFlow, and before own modules.
        self.switch = ""
        # Whether `tensorflow` will be that of v1 in this module.
        self.is_v1 = False
        self._own = own
        self._target = target

    def _usable(self, line: int) -> Iterator[tuple[str, str]]:
        """The bound names that are imported before a line of the module."""
        for name, value in self.bound.items():
            if self._lines.get(name, 0) <= line:
                yield name, value

    def expression(self, living: str, line: int = _LAST) -> str:
        """How to write a living name (`tf.X`, `hookbridge.X`, ...) in a line."""
        best, prefix = "", ""
        for name, value in self._usable(line):
            value = canonical(value)
            is_root = value in ("tf", "tf.compat.v1") or value.endswith(".keras")
            if is_root or value.startswith(("hookbridge", "tf_slim")):
                below = living == value or living.startswith(f"{value}.")
                is_module = value.rpartition(".")[2].islower()
                if below and is_module and len(value) > len(best):
                    best, prefix = value, name
        if best:
            return f"{prefix}{living[len(best) :]}"
        if text := self._by_v1(living, line):
            return text
        root, dot, rest = living.partition(".")
        if hasattr(builtins, root):
            return living
        if root == "tf" and self.is_v1:
            return self._of_v1(self.here(root, line), living)
        return f"{self.here(root, line)}{dot}{rest}"

    def _by_v1(self, living: str, line: int) -> str:
        """A name outside of v1 by an import of v1; empty without one."""
        root = living.partition(".")[0]
        for name, value in self._usable(line):
            if root == "tf" and canonical(value) == "tf.compat.v1":
                return self._of_v1(name, living)
        return ""

    def _of_v1(self, v1: str, living: str) -> str:
        """A name of TensorFlow by the name that `tensorflow.compat.v1` has here."""
        rest = living.partition(".")[2].removeprefix("compat.v1.")
        is_there = rest.startswith("compat.") or self._target.has_v1(living)
        is_there |= living.startswith("tf.compat.v1.")
        return f"{v1}.{'' if is_there else 'compat.v2.'}{rest}"

    def here(self, root: str, line: int = _LAST) -> str:
        """The top-level name of a module; the module is imported if it is not yet."""
        module, name = _USUAL.get(root, (root, root))
        if root == "tf" and self.is_v1:
            module = "tensorflow.compat.v1"
        for bound, value in (*self._wanted.items(), *self._usable(line)):
            if value == module:
                return bound
        fields = ("id", "arg", "name", "asname")
        taken = {getattr(node, field, "") for node in self._nodes for field in fields}
        while name in taken:
            name = f"{name}_"
        self._wanted[name] = module
        return name

    def add(self, text: str) -> str:
        """The text with the wanted lines added."""
        if not (self._wanted or self.first or self.switch):
            return text
        body = parsed(text).body
        imported = [_imported(statement) for statement in body]
        start = _start(body, imported)
        place = _after("tensorflow", imported, last=False) or start
        if self.switch.partition(".")[0] in self._wanted and _is_keras(imported, place):
            place -= 1  # what Keras imports depends on the switch
        lines = self._first_lines(start, body, imported)
        # This comes before the wanted imports: it may take one of them.
        switch = self._switch_lines(place, imported)
        place = min(place, _first_use(body, self._wanted))
        lines += [(place, _line(*wanted)) for wanted in self._wanted.items()]
        return _with_lines(text, body, [*lines, *switch])

    def _first_lines(
        self, start: int, body: Sequence[ast.stmt], imported: Sequence[list[Import]]
    ) -> list[tuple[int, str]]:
        """The lines that stand before every other import, after those there already."""
        there = {line: _early(line, body, imported) for line in self.first}
        first = max([start, *there.values()])
        lines = [(first, line) for line, place in there.items() if not place]
        if lines and start and first == start:
            lines.insert(0, (start, ""))
        return lines

    def _switch_lines(
        self, after: int, imported: Sequence[list[Import]]
    ) -> list[tuple[int, str]]:
        """The call that switches, if any, and the import that it needs by then."""
        if not self.switch:
            return []
        name = self.switch.partition(".")[0]
        binding = [n for n, held in enumerate(imported, 1) if _binds(held, name)]
        if binding and all(imported[after : binding[0]]):
            after = max(after, binding[0])  # nothing but imports stands between
        own = (n for n, held in enumerate(imported) if any(map(self._is_own, held)))
        # The program's own modules may already use what is switched.
        place = min(next(own, after), after)
        if any(number <= place for number in binding):
            return [(place, self.switch)]
        if place == after and name in self._wanted:
            return [(place, self.switch)]
        module = self._wanted.pop(name, "") or self.bound[name]
        return [(place, _line(name, module)), (place, self.switch)]

    def _is_own(self, one: Import) -> bool:
        """Whether an import is one of another module of the program."""
        return one.full.partition(".")[0] in ("", *self._own) or any(
            name in self._own for name in (one.full, one.full.rpartition(".")[0])
        )


def _binds(held: Iterable[Import], name: str) -> bool:
    """Whether imports bind a name."""
    return any(one.bound == name for one in held)


def _line(name: str, module: str) -> str:
    parent, _, last = module.rpartition(".")
    if name == module:
        return f"import {module}"
    if name == last and parent:
        return f"from {parent} import {last}"
    return f"import {module} as {name}"


def _start(body: Sequence[ast.stmt], imported: Sequence[list[Import]]) -> int:
    """The number of statements that nothing may stand before."""
    future = _after("__future__", imported)
    if body and is_border(body[0]):
        # `__future__` stays first in the script that a notebook is exported to.
        is_in_first_cell = sum(map(is_border, body[:future])) == 1
        return future if is_in_first_cell else 0
    has_text = body and isinstance(getattr(body[0], "value", None), ast.Constant)
    return future or int(bool(has_text))


def _imported(statement: ast.stmt) -> list[Import]:
    """What a statement at the top imports."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return []
    return [one for node in ast.walk(statement) for one in imports(node)]


def _after(
    package: str, imported: Iterable[Sequence[Import]], last: bool = True
) -> int:
    """The number of the statement after the imports of a package, or the first one."""
    places = [
        number
        for number, held in enumerate(imported, 1)
        if any(one.full.startswith(package) for one in held)
    ]
    return places[-1 if last else 0] if places else 0


def _is_keras(imported: Sequence[list[Import]], number: int) -> bool:
    """Whether the statement with a number imports Keras from TensorFlow."""
    held = imported[number - 1] if number else ()
    return any(canonical(one.full).endswith(".keras") for one in held) or any(
        ".keras." in one.full for one in held
    )


def _early(
    line: str, body: Sequence[ast.stmt], imported: Iterable[Sequence[Import]]
) -> int:
    """The number of the statement after a line that stands before all packages."""
    known = sys.stdlib_module_names
    wanted = ast.dump(parsed(line).body[0])
    for number, (statement, held) in enumerate(zip(body, imported, strict=True), 1):
        if ast.dump(statement) == wanted:
            return number
        if any(one.full.partition(".")[0] not in known for one in held):
            return 0
    return 0


def _first_use(body: Sequence[ast.stmt], names: Collection[str]) -> int:
    """The number of the first statement that has one of the names."""
    for number, statement in enumerate(body):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id in names:
                return number
    return len(body)


def _with_lines(
    text: str, body: Sequence[ast.stmt], lines: Iterable[tuple[int, str]]
) -> str:
    """The text with lines before statements, by their numbers."""
    rows = split_lines(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    first = [n for s in body[:1] for n in (s, *getattr(s, "decorator_list", []))]
    top = min((node.lineno - 1 for node in first), default=len(rows))
    # Of two lines for one place the earlier one is put in front of the later one.
    for number, line in sorted(lines, key=lambda pair: pair[0])[::-1]:
        row = (body[number - 1].end_lineno or 0) if number else top
        if row == len(rows) and rows and not rows[-1].endswith("\n"):
            rows[-1] += newline
            line = line.rstrip()
            rows.append(line)
        else:
            rows.insert(row, f"{line}{newline}")
    return "".join(rows)
