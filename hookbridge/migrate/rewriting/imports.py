"""Imports that rewritten code needs."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator, Sequence

from hookbridge.migrate.reading.modules import Module
from hookbridge.migrate.reading.names import canonical
from hookbridge.migrate.reading.sources import split_lines

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
    """What one module imports at its top level, and what it has to import.

    `own` are the modules of its program that it imports.
    """

    def __init__(self, module: Module, own: Collection[str]) -> None:
        names = module.names
        self.bound = {
            name: value
            for name, value in names.bound.items()
            if name in names.of_its_own and name not in names.aliases
        }
        code = _Body(module.source.tree.body).first_code()
        for name, statement in names.aliases.items():
            if code is None or statement.lineno < code.lineno:
                self.bound[name] = names.bound[name]
        self._nodes = module.source.nodes
        self._wanted: dict[str, str] = {}  # name -> module
        self.first: list[str] = []  # lines that stand before every other import
        self.switch = ""  # a call that stands after them, and before own modules
        self._own = own

    def expression(self, living: str) -> str:
        """How to write a living name (`tf.X`, `hookbridge.X`, ...) in this module."""
        best, prefix = "", ""
        for name, value in self.bound.items():
            value = canonical(value)
            is_root = value in ("tf", "tf.compat.v1")
            if is_root or value.startswith(("hookbridge", "tf_slim")):
                below = living == value or living.startswith(f"{value}.")
                is_module = value.rpartition(".")[2].islower()
                if below and is_module and len(value) > len(best):
                    best, prefix = value, name
        if best:
            return f"{prefix}{living[len(best) :]}"
        root, dot, rest = living.partition(".")
        if hasattr(builtins, root):
            return living
        return f"{self._name_of(root)}{dot}{rest}"

    def _name_of(self, root: str) -> str:
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
        module, name = _USUAL.get(root, (root, root))
        for bound, value in self.bound.items():
            if value == module:
                return bound
        fields = ("id", "arg", "name", "asname")
        taken = {getattr(node, field, "") for node in self._nodes for field in fields}
        while name in taken:
            name = f"{name}_"
        return name

    def add(self, text: str) -> str:
        """The text with the wanted lines added."""
        if not (self._wanted or self.first or self.switch):
            return text
        body = _Body(ast.parse(text).body)
        own = (n for n, one in enumerate(body.imported) if self._is_own(one))
        early, after = next(own, -1), body.after_imports()
        lines = [(body.after_future(), line) for line in self.first]
        if self.first and body.after_future():
            lines.insert(0, (body.after_future(), ""))
        if self.switch and 0 <= early <= after:
            # The program's own modules may already use what is switched.
            after = early
            name = self.switch.partition(".")[0]
            before = (held for one in body.imported[:early] for _, held in one)
            if name not in before:
                module = self._wanted.pop(name, "") or self.bound[name]
                lines.append((early, _line(name, module)))
        place = min(body.after_tensorflow(), body.first_use(self._wanted))
        wanted = [_line(name, module) for name, module in self._wanted.items()]
        lines += [(place, line) for line in wanted]
        if self.switch:
            lines.append((after, self.switch))
        return body.with_lines(text, lines, twice=(place, wanted))

    def _is_own(self, imported: Sequence[tuple[str, str]]) -> bool:
        """Whether a statement imports another module of the program."""
        return any(
            module in self._own or module.partition(".")[0] in ("", *self._own)
            for module, _ in imported
        )


def _line(name: str, module: str) -> str:
    parent, _, last = module.rpartition(".")
    if name == module:
        return f"import {module}"
    if name == last and parent:
        return f"from {parent} import {last}"
    return f"import {module} as {name}"


class _Body:
    """The statements of a module, by their numbers: where lines can be added."""

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        self._body = body
        # Of each statement what it imports: each module, and the name that is bound.
        self.imported = [list(_imported(statement)) for statement in body]

    def after_future(self) -> int:
        """The place after the docstring and the imports from `__future__`."""
        first = self._body[0] if self._body else None
        is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        return max(self._after("__future__"), default=int(is_text))

    def _after(self, package: str) -> list[int]:
        """The places after the imports of a package, or one whose name begins so."""
        return [
            number
            for number, held in enumerate(self.imported, 1)
            if any(name.startswith(package) for name, _ in held)
        ]

    def after_tensorflow(self) -> int:
        """The place after the first import of TensorFlow, also one inside `try`."""
        return next(iter(self._after("tensorflow")), self.after_future())

    def after_imports(self) -> int:
        """The place after that and the imports that follow it."""
        start = self.after_tensorflow()
        code = self.first_code(start)
        end = len(self._body) if code is None else self._body.index(code)
        following = (n for n in range(end, start, -1) if self.imported[n - 1])
        return next(following, start)

    def first_code(self, start: int | None = None) -> ast.stmt | None:
        """The first statement that is neither an import nor harmless."""
        start = self.after_future() if start is None else start
        for number in range(start, len(self._body)):
            statement, held = self._body[number], self.imported[number]
            is_block = hasattr(statement, "body")
            is_plain = not is_block or isinstance(statement, ast.Try | ast.If)
            if not is_plain or not (held or _is_harmless(statement)):
                return statement
        return None

    def first_use(self, names: Collection[str]) -> int:
        """The number of the first statement that has one of the names."""
        for number, statement in enumerate(self._body):
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and node.id in names:
                    return number
        return len(self._body)

    def with_lines(
        self,
        text: str,
        lines: Sequence[tuple[int, str]],
        twice: tuple[int, Collection[str]],
    ) -> str:
        """The text with lines before statements, by their numbers.

        `twice` has a number, and lines that are removed from there on.
        """
        rows = split_lines(text)
        newline = "\r\n" if "\r\n" in text else "\n"
        if rows and not rows[-1].endswith("\n"):
            rows[-1] += newline
        for statement in self._body[twice[0] :]:
            if ast.unparse(statement) in twice[1]:
                # An import has become one of the lines.
                rows[statement.lineno - 1] = ""
        # Of two lines for one place the earlier one is put in front of the later one.
        for number, line in sorted(lines, key=lambda pair: pair[0])[::-1]:
            rows.insert(self._row(number, len(rows)), f"{line}{newline}")
        return "".join(rows)

    def _row(self, number: int, end: int) -> int:
        """The number of lines above those that are put before a statement."""
        if number:
            return self._body[number - 1].end_lineno or 0
        first = self._body[:1]
        nodes = [node for s in first for node in (s, *getattr(s, "decorator_list", []))]
        return min((node.lineno - 1 for node in nodes), default=end)


def _imported(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """Each module that a statement imports, and the name that is bound.

    The module of a relative import begins with a dot.
    """
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, alias.asname or alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                bound = alias.asname or alias.name
                yield "." * node.level + (node.module or ""), bound


def _is_harmless(statement: ast.stmt) -> bool:
    """An alias or a setting of the environment between imports."""
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Attribute):
        return True
    return not hasattr(statement, "body") and "environ" in ast.unparse(statement)
