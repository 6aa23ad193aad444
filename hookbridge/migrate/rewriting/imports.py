"""Imports that rewritten code needs."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import libcst as cst
from libcst import matchers as m

from hookbridge.migrate.reading.names import canonical
from hookbridge.migrate.rewriting.tree_names import dotted, imported_as

Statement: TypeAlias = cst.SimpleStatementLine | cst.BaseCompoundStatement

# Root of a dotted name -> module, and the name it is usually imported as.
_USUAL = {
    "tf": ("tensorflow", "tf"),
    "hookbridge": ("hookbridge", "hb"),
    "lookup_ops": ("tensorflow.python.ops.lookup_ops", "lookup_ops"),
}


def module_of(root: str) -> str:
    """The module that the root of a living name means."""
    return _USUAL.get(root, (root, root))[0]


class Imports:
    """What one module imports at its top level, and what it has to import."""

    def __init__(
        self, bound: Mapping[str, str], names: frozenset[str], own: Collection[str]
    ) -> None:
        self.bound = dict(bound)
        self._taken = names | frozenset(bound)
        self._wanted: dict[str, str] = {}  # name -> module
        self.first: list[str] = []  # lines that stand before every other import
        self.switch = ""  # a call that stands after them, and before own modules
        self._own = own

    def bind(self, name: str, module: str) -> None:
        """Notes that `name` means another module from now on."""
        self.bound[name] = module

    def forget(self, name: str) -> None:
        """Notes that an import is gone."""
        self.bound.pop(name, None)

    def expression(self, living: str) -> str:
        """How to write a living name (`tf.X`, `hookbridge.X`, ...) in this module."""
        best, rest = "", ""
        for name, value in self.bound.items():
            value = canonical(value)
            if value in ("tf", "tf.compat.v1") or value.startswith(
                ("hookbridge", "tf_slim")
            ):
                below = living == value or living.startswith(f"{value}.")
                is_module = value.rpartition(".")[2].islower()
                if below and is_module and len(value) > len(best):
                    best, rest = value, living[len(value) :]
                    prefix = name
        if best:
            return f"{prefix}{rest}"
        root, _, rest = living.partition(".")
        if hasattr(builtins, root):
            return living
        return f"{self.name_of(root)}.{rest}" if rest else self.name_of(root)

    def name_of(self, root: str) -> str:
        """The top-level name of a module; the module is imported if it is not yet."""
        module = module_of(root)
        for name, value in self._wanted.items():
            if value == module:
                return name
        name = self.here(root)
        if name not in self.bound:
            self._wanted[name] = module
        return name

    def here(self, root: str) -> str:
        """The name of a module, for code that imports the module itself."""
        module, usual = _USUAL.get(root, (root, root))
        for name, value in self.bound.items():
            if value == module:
                return name
        name = usual
        while name in self._taken:
            name = f"{name}_"
        return name

    def add(self, module: cst.Module) -> cst.Module:
        """The module with the wanted lines added."""
        if not (self._wanted or self.first or self.switch):
            return module
        body = list(module.body)
        if self.first:
            place = _after_future(body)
            head = _statements(self.first)
            if place:
                head[0] = head[0].with_changes(leading_lines=[cst.EmptyLine()])
            body[place:place] = head
        early = next((n for n, s in enumerate(body) if self._is_own(s)), len(body))
        if self.switch and (place := min(early, _after_imports(body))) == early:
            # The program's own modules may already use what is switched.
            name = self.switch.partition(".")[0]
            lines = [self.switch]
            bound = {held for one in body[:place] for _, held in _imported(one)}
            if name not in bound:
                module_name = self._wanted.pop(name, "") or self.bound[name]
                lines.insert(0, _line(name, module_name))
            body[place:place] = _statements(lines)
            self.switch = ""
        if self._wanted:
            place = min(_after_tensorflow(body), _first_use(body, self._wanted))
            lines = [_line(name, wanted) for name, wanted in self._wanted.items()]
            _insert(body, place, lines)
        if self.switch:
            place = _after_imports(body)
            body[place:place] = _statements([self.switch])
        return module.with_changes(body=body)

    def _is_own(self, statement: cst.CSTNode) -> bool:
        """Whether a statement imports another module of the program."""
        return any(
            module in self._own or module.partition(".")[0] in ("", *self._own)
            for module, _ in _imported(statement)
        )


def _imported(statement: cst.CSTNode) -> list[tuple[str, str]]:
    """What a statement imports: each module, and the name that is bound.

    The module of a relative import begins with a dot.
    """
    pairs: list[tuple[str, str]] = []
    if isinstance(statement, cst.FunctionDef | cst.ClassDef):
        return pairs
    nodes: Sequence[cst.CSTNode]
    if isinstance(statement, cst.SimpleStatementLine):
        nodes = statement.body  # matchers are slow
    else:
        nodes = m.findall(statement, m.Import() | m.ImportFrom())
    for node in nodes:
        if not isinstance(node, cst.Import | cst.ImportFrom):
            continue
        module, aliases = "", node.names
        if isinstance(node, cst.ImportFrom):
            name = "" if node.module is None else dotted(node.module) or ""
            module = "." * len(node.relative) + name
        if isinstance(aliases, cst.ImportStar):
            pairs.append((module, ""))
            continue
        for alias in aliases:
            name = dotted(alias.name) or ""
            bound = imported_as(alias) or name.partition(".")[0]
            pairs.append((module or name, bound))
    return pairs


def _line(name: str, module: str) -> str:
    parent, _, last = module.rpartition(".")
    if name == module:
        return f"import {module}"
    if name == last and parent:
        return f"from {parent} import {last}"
    return f"import {module} as {name}"


def _statements(lines: Sequence[str]) -> list[Statement]:
    return [cst.parse_statement(line) for line in lines]


def _insert(body: list[Statement], place: int, lines: Sequence[str]) -> None:
    """Puts lines in front of a statement; they replace a `pass` before it."""
    new = _statements(lines)
    # An import below may have become one of these lines: it would be there twice.
    body[place:] = [s for s in body[place:] if not any(s.deep_equals(n) for n in new)]
    before = body[place - 1] if place else None
    if isinstance(before, cst.SimpleStatementLine) and all(
        isinstance(small, cst.Pass) for small in before.body
    ):
        place -= 1
        body.pop(place)
        new[0] = new[0].with_changes(leading_lines=before.leading_lines)
    body[place:place] = new


def _first_use(body: Sequence[cst.CSTNode], names: Collection[str]) -> int:
    """The number of the first statement that has one of the names."""
    one_of_them = m.Name(m.MatchIfTrue(lambda name: name in names))
    places = (n for n, one in enumerate(body) if m.findall(one, one_of_them))
    return next(places, len(body))


def _is_docstring(statement: cst.CSTNode) -> bool:
    return (
        isinstance(statement, cst.SimpleStatementLine)
        and isinstance(statement.body[0], cst.Expr)
        and isinstance(statement.body[0].value, cst.SimpleString)
    )


def _after_future(body: Sequence[cst.CSTNode]) -> int:
    """The place after the docstring and the imports from `__future__`."""
    place = 1 if body and _is_docstring(body[0]) else 0
    future = (n for n, one in enumerate(body) if _imports(one, "__future__"))
    return max(future, default=place - 1) + 1


def _imports(statement: cst.CSTNode, package: str) -> bool:
    """Whether a statement imports a package, or one whose name begins so."""
    return any(name.startswith(package) for name, _ in _imported(statement))


def _after_tensorflow(body: Sequence[cst.CSTNode]) -> int:
    """The place after the first import of TensorFlow, also one inside `try`."""
    places = (n + 1 for n, one in enumerate(body) if _imports(one, "tensorflow"))
    return next(places, _after_future(body))


def _after_imports(body: Sequence[cst.CSTNode]) -> int:
    """The place after the first import of TensorFlow and the imports that follow it."""
    start = _after_tensorflow(body)
    following = range(start, first_code(body, start))
    return max([n + 1 for n in following if not _is_harmless(body[n])], default=start)


def first_code(body: Sequence[cst.CSTNode], start: int | None = None) -> int:
    """The number of the first statement that is neither an import nor harmless."""
    if start is None:
        start = _after_future(body)
    for number, statement in enumerate(body[start:], start):
        plain = isinstance(statement, cst.SimpleStatementLine) and all(
            isinstance(small, cst.Import | cst.ImportFrom) for small in statement.body
        )
        within = isinstance(statement, cst.Try | cst.If) and _imported(statement)
        if not (plain or within or _is_harmless(statement)):
            return number
    return len(body)


def _is_harmless(statement: cst.CSTNode) -> bool:
    """An alias or a setting of the environment between imports."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    return all(
        (isinstance(small, cst.Assign) and isinstance(small.value, cst.Attribute))
        or "environ" in cst.Module([cst.SimpleStatementLine([small])]).code
        for small in statement.body
    )
