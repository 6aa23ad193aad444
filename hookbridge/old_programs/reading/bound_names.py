"""Which TensorFlow name an expression means, by the imports of its file."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hookbridge.old_programs.names.removed import removed_methods

# Nested copies of the same module, as `tf.compat.v1.compat.v1`: the last one counts.
_COPIES = re.compile(r"^(compat\.v[12]\.)+(?=compat\.v[12](\.|$))")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_V1 = "tf.compat.v1"
# Packages of which other names for a part are followed.
_FOLLOWED = ("tensorflow", "tf_slim", "hookbridge", "absl")


def canonical(dotted: str) -> str:
    """One spelling for a dotted name: `tf.X`, `tf.compat.v1.X`, or unchanged.

    `tensorflow` and `tensorflow.compat.v2` become `tf`, `tensorflow.contrib` becomes
    `tf.contrib`; `tensorflow.python`, `tensorflow.core` and other packages stay.
    """
    root, _, rest = dotted.partition(".")
    if root != "tensorflow" or rest.startswith(("python.", "core.")):
        return dotted
    rest = _COPIES.sub("", rest)
    if rest.startswith("compat.v1.contrib"):
        rest = rest[len("compat.v1.") :]  # `tf.contrib`, where `tf` is now v1
    if rest == "compat.v2" or rest.startswith("compat.v2."):
        rest = rest[len("compat.v2.") :]
    if rest.startswith("contrib.") and ".python." in rest:
        rest = _public_contrib(rest)
    return f"tf.{rest}" if rest else "tf"


def _public_contrib(rest: str) -> str:
    """`contrib.learn.RunConfig` for `contrib.learn.python.learn...RunConfig`."""
    package, _, inside = rest.partition(".python.")
    if ".nets." in inside:
        return f"{package}.nets.{inside.partition('.nets.')[2]}"
    parts = inside.split(".")
    classes = [number for number, part in enumerate(parts) if part[:1].isupper()]
    return f"{package}.{'.'.join(parts[classes[0] :])}" if classes else rest


def as_v1(name: str) -> str:
    """A name of `tf` as the name of `tf.compat.v1`; other names unchanged."""
    root, _, rest = name.partition(".")
    if root != "tf" or rest.partition(".")[0] in ("compat", "contrib", "examples"):
        return name
    return f"{_V1}.{rest}" if rest else _V1


def module_name(base: str | None, level: int, package: Sequence[str]) -> str:
    """The absolute name of `..base`, of that level, in a package with these parts."""
    above = list(package[: len(package) - level + 1]) if level else []
    return ".".join([*above, *(base.split(".") if base else [])])


class Import(NamedTuple):
    """One name that an import binds."""

    node: ast.Import | ast.ImportFrom
    alias: ast.alias  # the part of it that binds the name
    bound: str  # "*" for all names of a module
    full: str  # what is imported; the name begins with dots for a relative import


def imports(node: ast.AST) -> Iterator[Import]:
    """Each name that an import binds; nothing for other nodes."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            yield Import(node, alias, bound, alias.name)
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            bound = alias.asname or alias.name
            yield Import(node, alias, bound, f"{module}.{alias.name}")


class Scope:
    """The names that a module or a function binds."""

    def __init__(self, above: Scope | None = None) -> None:
        # `{name: the dotted names that imports give it}`.
        self.imported: dict[str, dict[str, None]] = {}
        # Names that are bound in another way as well.
        self.others: Counter[str] = Counter()
        self.above = above  # the scope around it; None for a module

    def bind(self, name: str, dotted: str) -> None:
        """Notes what an import gives to a name."""
        self.imported.setdefault(name, {})[dotted] = None

    def value(self, name: str) -> str | None:
        """What an import of this scope gives to a name, if that is certain."""
        names = list(self.imported.get(name, ()))
        # `try: import tensorflow.compat.v1 as tf` and its fallback.
        for prefixes in (("tensorflow.compat.v1",), _FOLLOWED):
            if len(names) > 1:
                names = [n for n in names if n.startswith(prefixes)] or names
        return names[0] if len(names) == 1 else None


class Names:
    """What the names of a module mean, by its scopes, imports and plain assignments."""

    def __init__(
        self, tree: ast.Module, nodes: Sequence[ast.AST], package: Sequence[str] = ()
    ) -> None:
        self.starred: list[str] = []  # the modules of `from module import *`, in order
        # `v1` for `v1 = tf.compat.v1` at module level.
        self.aliases: set[str] = set()
        self._package = package
        self._top = Scope()
        self._roots: dict[ast.Name, Scope] = {}
        self._walk(tree, self._top)
        self.bound: dict[str, str] = {
            name: value
            for name in self._top.imported
            if (value := self._top.value(name)) is not None
        }
        self._statements = tree.body
        self.add_aliases()
        # The names among them that this module binds itself.
        self.bound_here: frozenset[str] = frozenset(self.bound)
        # The dotted names that the module assigns to, such as `tensorflow.model`.
        stored = (n for n in nodes if isinstance(getattr(n, "ctx", None), ast.Store))
        attributes = (n for n in stored if isinstance(n, ast.Attribute))
        written = filter(None, map(self.raw, attributes))
        self.written: frozenset[str] = frozenset(written)

    def _walk(self, node: ast.AST, scope: Scope) -> None:
        """Notes what each statement below a node binds, and the scope of each name."""
        for child in ast.iter_child_nodes(node):
            inner = scope
            if isinstance(child, ast.Name):
                self._roots[child] = scope
                if not isinstance(child.ctx, ast.Load):
                    scope.others[child.id] += 1
            elif isinstance(child, ast.Import | ast.ImportFrom):
                self._import(child, scope)
            elif isinstance(child, ast.arg):
                scope.others[child.arg] += 1
            elif isinstance(child, (*_FUNCTIONS, ast.ClassDef)):
                scope.others[getattr(child, "name", "")] += 1
                inner = Scope(scope) if isinstance(child, _FUNCTIONS) else scope
            self._walk(child, inner)

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        for _, alias, bound, full in imports(node):
            if isinstance(node, ast.Import):
                scope.bind(bound, full if alias.asname else bound)
                continue
            module = module_name(node.module, node.level, self._package)
            if bound == "*":
                self.starred.append(module)
            else:
                scope.bind(bound, f"{module}.{alias.name}")

    def add_aliases(self) -> None:
        """Notes `estimator = tf.estimator` and `v1 = tf.compat.v1`, at module level."""
        for statement in self._statements:
            if (
                isinstance(statement, ast.Assign)
                and len(statement.targets) == 1
                and isinstance(statement.targets[0], ast.Name)
                and isinstance(statement.value, ast.Attribute | ast.Name)
                and (value := self.raw(statement.value)) is not None
                and value.partition(".")[0].startswith(_FOLLOWED)
            ):
                name = statement.targets[0].id
                if self._top.others[name] == 1 and name not in self._top.imported:
                    self.bound[name] = value
                    self.aliases.add(name)

    def raw(self, node: ast.AST) -> str | None:
        """The dotted name of an expression as imported, or None."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        root = self._meant(node)
        return None if root is None else ".".join([root, *reversed(parts)])

    def _meant(self, node: ast.Name) -> str | None:
        """What a name is given by an import, if that is certain."""
        scope = self._roots.get(node)
        while scope is not None and scope is not self._top:
            if node.id in scope.imported:
                return scope.value(node.id)
            if node.id in scope.others:
                return None
            scope = scope.above
        return self.bound.get(node.id)

    def of(self, node: ast.AST) -> str | None:
        """The canonical dotted name of an expression, or None."""
        raw = self.raw(node)
        return None if raw is None else canonical(raw)


def _of_imported(names: Iterable[str], nodes: Sequence[ast.AST]) -> list[str]:
    """Those of the names that are of a library which the module imports."""
    imported = {one.full.partition(".")[0] for node in nodes for one in imports(node)}
    return [name for name in names if name.partition(".")[0] in imported]


def uses(
    nodes: Sequence[ast.AST], names: Names
) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """The outermost dotted names in a module, and the names that it imports.

    So are methods that a library has lost: if the module imports the library, an
    object with a method of such a name is taken for one of the library's.
    """
    inner: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Attribute):
            inner.add(id(node.value))
            if id(node) not in inner and (name := names.of(node)) is not None:
                yield node, name
            elif lost := removed_methods(node.attr):
                yield from ((node, one) for one in _of_imported(lost, nodes))
        for one in imports(node):
            if one.bound != "*" and not one.full.startswith("."):
                yield one.node, canonical(one.full)
