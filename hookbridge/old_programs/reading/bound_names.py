"""Which TensorFlow name an expression means, by the imports of its file."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from hookbridge.ground.module_names import bound_by
from hookbridge.old_programs.reading.import_statements import (
    canonical,
    imports,
    loaded,
    module_name,
)

# What binds names, or holds what may fail.
_BINDING = frozenset(
    {
        ast.Import,
        ast.ImportFrom,
        ast.arg,
        ast.Assign,
        ast.Global,
        ast.Try,
        ast.ExceptHandler,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.Lambda,
        ast.ClassDef,
        ast.MatchAs,
        ast.MatchStar,
        ast.MatchMapping,
    }
)
# What has nothing below it.
_LEAVES = frozenset({ast.Constant, ast.Load, ast.Store, ast.Del, ast.Pass})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# Packages of which other names for a part are followed.
_FOLLOWED = ("tensorflow", "tf_slim", "hookbridge", "absl")


class Given(NamedTuple):
    """A name of TensorFlow that a module has from a starred import."""

    dotted: str  # what it is: `tensorflow.placeholder`
    star: str  # the module that the file stars itself; empty if another file does


class Scope:
    """The names that a module or a function binds."""

    def __init__(self, above: Scope | None = None) -> None:
        # `{name: the dotted names that imports give it}`.
        self.imported: dict[str, dict[str, None]] = {}
        # Names that are bound in another way as well.
        self.others: Counter[str] = Counter()
        # `{name: the dotted name}` for `slim = tf.contrib.slim` in a function.
        self.aliases: dict[str, str] = {}
        self.above = above  # the scope around it; None for a module

    def bind(self, name: str, dotted: str) -> None:
        """Note what an import gives to a name.

        Args:
          name: the name in the file.
          dotted: what is imported, by its full name.
        """
        self.imported.setdefault(name, {})[dotted] = None

    def has(self, name: str) -> bool:
        """Return whether the scope binds a name."""
        return name in self.imported or self.others[name] > 0

    def value(self, name: str) -> str | None:
        """Return what an import of this scope gives to a name, if that is certain."""
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
        self.tried: set[str] = set()  # those of them that stand in a `try`
        # Name -> what starred imports give it; `starred.follow` fills it.
        self.given: dict[str, Given] = {}
        # The names that it imports from another module of the program, which has them
        # from TensorFlow; `imported_files.link` fills it.
        self.handed_on: set[str] = set()
        # Dotted name -> the names of that module of the same program.
        self.own: Mapping[str, Names] = {}
        # What attributes of these modules are: `common.tf` is `tensorflow`.
        self.through: dict[str, str] = {}
        # `v1` for `v1 = tf.compat.v1` at module level.
        self.aliases: set[str] = set()
        self._package = package
        self._in_try = False
        self._top = Scope()
        self._roots: dict[ast.Name, Scope] = {}
        self._around_imports: dict[ast.stmt, Scope] = {}
        # The assignments of one name in functions, in order.
        self._in_functions: list[tuple[ast.Assign, Scope]] = []
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
        assigned = filter(None, map(self.through_program, attributes))
        self.assigned: frozenset[str] = frozenset(assigned)

    def _walk(self, node: ast.AST, scope: Scope) -> None:
        """Note what each statement below a node binds, and the scope of each name."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Name):
                self._roots[child] = scope
                if not isinstance(child.ctx, ast.Load):
                    scope.others[child.id] += 1
            elif type(child) in _BINDING:
                self._bind(child, scope)
            elif type(child) not in _LEAVES:
                self._walk(child, scope)

    def _bind(self, child: ast.AST, scope: Scope) -> None:
        """Note what a statement binds, and what is below it."""
        inner = scope
        if isinstance(child, ast.Import | ast.ImportFrom):
            self._import(child, scope)
        elif isinstance(child, ast.Assign):
            self._assign(child, scope)
        elif isinstance(child, ast.Global):
            self._top.others.update(child.names)
        else:
            scope.others.update(bound_by(child))
            inner = Scope(scope) if isinstance(child, _FUNCTIONS) else scope
        before, self._in_try = self._in_try, self._in_try or isinstance(child, ast.Try)
        self._walk(child, inner)
        self._in_try = before

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        """Note what an import binds, and the modules whose names it stars."""
        self._around_imports[node] = scope
        for _, alias, bound, full in imports(node):
            if isinstance(node, ast.Import):
                scope.bind(bound, full if alias.asname else bound)
                continue
            module = module_name(node.module, node.level, self._package)
            if bound == "*":
                self.starred.append(module)
                if self._in_try:
                    self.tried.add(module)
            else:
                scope.bind(bound, f"{module}.{alias.name}")

    def _assign(self, node: ast.Assign, scope: Scope) -> None:
        """Note `tf = importlib.import_module("tensorflow")`."""
        if scope is not self._top:
            self._in_functions.append((node, scope))
        root, parts = _parts(node.value)
        module = loaded(root)
        if not module:
            return
        for target in node.targets:
            if isinstance(target, ast.Name):
                scope.bind(target.id, ".".join([module, *parts]))
                if scope is self._top:
                    self.aliases.add(target.id)

    def add_aliases(self) -> None:
        """Note `estimator = tf.estimator` and `v1 = tf.compat.v1`."""
        for statement in self._statements:
            alias = self._alias(statement, self._top)
            if alias is not None:
                name, value = alias
                self.bound[name] = value
                self.aliases.add(name)
        for assignment, scope in self._in_functions:
            scope.aliases.update(filter(None, [self._alias(assignment, scope)]))

    def inner_aliases(self) -> Iterator[tuple[Scope, str, str]]:
        """Yield the aliases of functions: the scope, the name and what it means."""
        for scope in {scope: None for _, scope in self._in_functions}:
            for name, value in scope.aliases.items():
                yield scope, name, value

    def _alias(self, statement: ast.stmt, scope: Scope) -> tuple[str, str] | None:
        """Return the name and the meaning of a plain alias of a followed package."""
        if not (
            isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Name)
            and isinstance(statement.value, ast.Attribute | ast.Name)
        ):
            return None
        name, value = statement.targets[0].id, self.through_program(statement.value)
        if value is None or not value.partition(".")[0].startswith(_FOLLOWED):
            return None
        is_only_one = scope.others[name] == 1 and name not in scope.imported
        return (name, value) if is_only_one else None

    def binds(self, name: str) -> bool:
        """Return whether the module binds a name itself, at its top level."""
        return self._top.has(name)

    def imported_names(self) -> set[str]:
        """Return the dotted names that the imports at its top level bind."""
        return {
            dotted
            for dotted_names in self._top.imported.values()
            for dotted in dotted_names
        }

    def may_be_module(self, node: ast.Name) -> bool:
        """Return whether a name is imported, or bound nowhere around the place."""
        scope = self.binding_scope(node)
        return scope is None or node.id in scope.imported

    def binding_scope(self, node: ast.Name) -> Scope | None:
        """Return the innermost scope around a name that binds it; None without one."""
        scope = self._roots.get(node)
        while scope is not None and not scope.has(node.id):
            scope = scope.above
        return scope

    def import_scope(self, node: ast.Import | ast.ImportFrom) -> Scope:
        """Return the scope whose names an import binds."""
        return self._around_imports[node]

    @functools.cached_property
    def whole_scopes(self) -> frozenset[Scope]:
        """The scopes with `import tensorflow.python.ops`: v1 has no such module.

        `tensorflow` cannot be that of v1 there.
        """
        return frozenset(
            scope
            for node, scope in self._around_imports.items()
            for imported in imports(node)
            if imported.bound == "tensorflow"
            and canonical(imported.full).startswith(("tensorflow.", "tf.contrib"))
        )

    def is_whole(self, node: ast.expr) -> bool:
        """Return whether a name is `tensorflow` in such a scope."""
        if not (isinstance(node, ast.Name) and node.id == "tensorflow"):
            return False
        return self.binding_scope(node) in self.whole_scopes

    @property
    def module_scope(self) -> Scope:
        """The scope of the module itself."""
        return self._top

    @functools.cached_property
    def free(self) -> frozenset[str]:
        """The names that the module reads, and binds nowhere around the place."""
        names: set[str] = set()
        for node in self._roots:
            is_new = node.id not in names and isinstance(node.ctx, ast.Load)
            if is_new and self.binding_scope(node) is None:
                names.add(node.id)
        return frozenset(names)

    def through_program(self, node: ast.AST) -> str | None:
        """Return the dotted name of an expression as imported, or None.

        What it has from another module of the program is what it is there.
        """
        dotted = self.by_imports(node)
        return dotted and self._followed(dotted) if self.through else dotted

    def by_imports(self, node: ast.AST) -> str | None:
        """Return the dotted name of an expression by the imports of this file."""
        first, parts = _parts(node)
        root = self._meant(first) if isinstance(first, ast.Name) else loaded(first)
        if not root:
            return None
        return ".".join([root, *parts])

    def _followed(self, dotted: str) -> str:
        """Return a name that another module of the program has, as what it is there."""
        parts = dotted.split(".")
        for end in range(len(parts), 1, -1):
            value = self.through.get(".".join(parts[:end]))
            if value is not None:
                return ".".join([value, *parts[end:]])
        return dotted

    def _meant(self, node: ast.Name) -> str | None:
        """Return what a name is given by an import, if that is certain."""
        scope = self._roots.get(node)
        while scope is not None and scope is not self._top:
            if node.id in scope.aliases:
                return scope.aliases[node.id]
            if node.id in scope.imported:
                return scope.value(node.id)
            if node.id in scope.others:
                return None
            scope = scope.above
        return self.bound.get(node.id)

    def canonical(self, node: ast.AST) -> str | None:
        """Return the canonical dotted name of an expression, or None."""
        raw = self.through_program(node)
        return None if raw is None else canonical(raw)


def _parts(node: ast.AST) -> tuple[ast.AST, list[str]]:
    """Return what a dotted name begins with, and the attributes after it."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return node, parts
