"""Which scope of a module binds a name, and which imports bind it there."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterator, Sequence

from hookbridge.ground.imports.module_names import bound_by
from hookbridge.old_programs.reading.names.import_statements import (
    canonical,
    imports,
    loaded_module,
    module_name,
)
from hookbridge.tf1_names.syntax import parts_of

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
FOLLOWED = ("tensorflow", "tf_slim", "hookbridge", "absl")


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
        for prefixes in (("tensorflow.compat.v1",), FOLLOWED):
            if len(names) > 1:
                names = [n for n in names if n.startswith(prefixes)] or names
        return names[0] if len(names) == 1 else None

    def binds_once(self, name: str) -> bool:
        """Return whether the scope binds a name in one place, which is no import."""
        return self.others[name] == 1 and name not in self.imported


class Scopes:
    """The scopes of a module, and what its imports bind in each."""

    def __init__(self, tree: ast.Module, package: Sequence[str] = ()) -> None:
        self.module = Scope()  # that of the module itself
        self.starred: list[str] = []  # the modules of `from module import *`, in order
        self.tried: set[str] = set()  # those of them that stand in a `try`
        # The names of `tf = importlib.import_module("tensorflow")` at module level.
        self.loaded: set[str] = set()
        # The assignments of one name in functions, in order.
        self.in_functions: list[tuple[ast.Assign, Scope]] = []
        self._package = package
        self._in_try = False
        self._roots: dict[ast.Name, Scope] = {}
        self._around_imports: dict[ast.stmt, Scope] = {}
        self._walk(tree, self.module)

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
            self.module.others.update(child.names)
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
        if scope is not self.module:
            self.in_functions.append((node, scope))
        root, parts = parts_of(node.value)
        module = loaded_module(root)
        if not module:
            return
        for target in node.targets:
            if isinstance(target, ast.Name):
                scope.bind(target.id, ".".join([module, *parts]))
                if scope is self.module:
                    self.loaded.add(target.id)

    def imported_names(self) -> set[str]:
        """Return the dotted names that the imports at the top level bind."""
        return {
            dotted
            for dotted_names in self.module.imported.values()
            for dotted in dotted_names
        }

    def may_be_module(self, node: ast.Name) -> bool:
        """Return whether a name is imported, or bound nowhere around the place."""
        scope = self.binding_scope(node)
        return scope is None or node.id in scope.imported

    def binding_scope(self, node: ast.Name) -> Scope | None:
        """Return the innermost scope around a name that binds it; None without one."""
        return next((s for s in self.around(node) if s.has(node.id)), None)

    def around(self, node: ast.Name) -> Iterator[Scope]:
        """Yield the scopes around a name, from the innermost to the module."""
        scope = self._roots.get(node)
        while scope is not None:
            yield scope
            scope = scope.above

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

    def is_whole(self, node: ast.AST) -> bool:
        """Return whether a name is `tensorflow` in such a scope."""
        if not (isinstance(node, ast.Name) and node.id == "tensorflow"):
            return False
        return self.binding_scope(node) in self.whole_scopes

    @functools.cached_property
    def free(self) -> frozenset[str]:
        """The names that the module reads, and binds nowhere around the place."""
        names: set[str] = set()
        for node in self._roots:
            is_new = node.id not in names and isinstance(node.ctx, ast.Load)
            if is_new and self.binding_scope(node) is None:
                names.add(node.id)
        return frozenset(names)
