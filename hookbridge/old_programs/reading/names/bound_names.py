"""Which TensorFlow name an expression means, by the imports of its file."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from hookbridge.old_programs.reading.names.import_statements import (
    canonical,
    loaded_module,
)
from hookbridge.old_programs.reading.names.scopes import FOLLOWED, Scope, Scopes
from hookbridge.tf1_names.outcome import join_name
from hookbridge.tf1_names.syntax import (
    beginnings,
    called_function,
    parts_of,
    text_of,
)


class Given(NamedTuple):
    """A name of TensorFlow that a module has from a starred import."""

    dotted: str  # what it is: `tensorflow.placeholder`
    star: str  # the module that the file stars itself; empty if another file does


class Names:
    """What the names of a module mean, by its scopes, imports and plain assignments."""

    def __init__(
        self, tree: ast.Module, nodes: Sequence[ast.AST], package: Sequence[str] = ()
    ) -> None:
        self.scopes: Scopes = Scopes(tree, package)
        # Name -> what starred imports give it; `starred.follow` fills it.
        self.given: dict[str, Given] = {}
        # The names that it imports from another module of the program, which has them
        # from TensorFlow; `imported_files.link` fills it.
        self.handed_on: set[str] = set()
        # Dotted name -> the names of that module of the same program.
        self.by_module: Mapping[str, Names] = {}
        # What attributes of these modules are: `common.tf` is `tensorflow`.
        self.through: dict[str, str] = {}
        # `v1` for `v1 = tf.compat.v1` at module level.
        self.aliases: set[str] = set(self.scopes.loaded)
        top = self.scopes.module
        self.bound: dict[str, str] = {
            name: value
            for name in top.imported
            if (value := top.value(name)) is not None
        }
        self._statements = tree.body
        self.add_aliases()
        # The names among them that this module binds itself.
        self.bound_here: frozenset[str] = frozenset(self.bound)
        self._nodes = nodes
        # The dotted names that other files of its programs assign to;
        # `imported_files.share_assigned` fills it.
        self.assigned_by_others: frozenset[str] = frozenset()

    @functools.cached_property
    def assigned(self) -> frozenset[str]:
        """The dotted names that the module assigns to, such as `tensorflow.model`.

        It counts once the names that come from other files are known.
        """
        return frozenset(self._assigned())

    def _assigned(self) -> Iterator[str]:
        """Yield the dotted names that `tf.x = ...` and `setattr(tf, "x", ...)` set."""
        for node in self._nodes:
            name: str | None = None
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                name = self.through_program(node)
            elif called_function(node) == "setattr" and isinstance(node, ast.Call):
                owner = self.through_program(node.args[0]) if node.args else None
                attribute = text_of(node.args[1]) if len(node.args) > 1 else ""
                name = f"{owner}.{attribute}" if owner and attribute else None
            if name:
                yield name

    def add_aliases(self) -> None:
        """Note `estimator = tf.estimator` and `v1 = tf.compat.v1`."""
        for statement in self._statements:
            alias = self._alias(statement, self.scopes.module)
            if alias is not None:
                name, value = alias
                self.bound[name] = value
                self.aliases.add(name)
        for assignment, scope in self.scopes.in_functions:
            scope.aliases.update(filter(None, [self._alias(assignment, scope)]))

    def inner_aliases(self) -> Iterator[tuple[Scope, str, str]]:
        """Yield the aliases of functions: the scope, the name and what it means."""
        for scope in {scope: None for _, scope in self.scopes.in_functions}:
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
        if value is None or not value.partition(".")[0].startswith(FOLLOWED):
            return None
        return (name, value) if scope.binds_once(name) else None

    def through_program(self, node: ast.AST) -> str | None:
        """Return the dotted name of an expression as imported, or None.

        What it has from another module of the program is what it is there.
        """
        dotted = self.by_imports(node)
        return dotted and self._resolve_through(dotted) if self.through else dotted

    def by_imports(self, node: ast.AST) -> str | None:
        """Return the dotted name of an expression by the imports of this file."""
        first, parts = parts_of(node)
        root = (
            self._meant(first) if isinstance(first, ast.Name) else loaded_module(first)
        )
        if not root:
            return None
        return ".".join([root, *parts])

    def _resolve_through(self, dotted: str) -> str:
        """Return what a name of another module of the program means there."""
        for attribute, inside in beginnings(dotted):
            if attribute in self.through:
                return join_name(self.through[attribute], inside)
        return dotted

    def _meant(self, node: ast.Name) -> str | None:
        """Return what a name is given by an import, if that is certain."""
        for scope in self.scopes.around(node):
            if scope is self.scopes.module:
                break
            if node.id in scope.aliases:
                return scope.aliases[node.id]
            if node.id in scope.imported:
                return scope.value(node.id)
            if node.id in scope.others:
                return None
        return self.bound.get(node.id)

    def canonical(self, node: ast.AST) -> str | None:
        """Return the canonical dotted name of an expression, or None."""
        raw = self.through_program(node)
        return None if raw is None else canonical(raw)
