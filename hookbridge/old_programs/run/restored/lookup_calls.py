"""Writes calls into a file that look up what libraries removed.

`np.float` becomes `__hookbridge_restored__.of(np, "float")`, at the same place in the
file, so that tracebacks show the right lines. The modules themselves stay as they are,
and so does every file that uses no removed name.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeGuard

from hookbridge.legacy import removed_attributes
from hookbridge.old_programs.reading.names.bound_names import Names
from hookbridge.old_programs.reading.names.import_statements import (
    imports,
    loaded_module,
)
from hookbridge.old_programs.run.restored import (
    restored_arguments,
    restored_names,
    restored_randomness,
)
from hookbridge.tf1_names import removed_in_libraries
from hookbridge.tf1_names.syntax import called_function, root_of

HELPER = "__hookbridge_restored__"
_LIBRARY_LOOKUP = "hookbridge.old_programs.run.restored.library_lookup"


@functools.cache
def _of_modules() -> frozenset[str]:
    """Return the last parts of what modules no longer have, or take otherwise."""
    return frozenset(
        name.rpartition(".")[2] for name in _importable_names() if "." in name
    )


@functools.cache
def _of_objects() -> frozenset[str]:
    """Return the names of methods that classes no longer have, or that take more."""
    return removed_attributes.names() | restored_randomness.OLD_CALLS.keys()


@functools.cache
def _words() -> re.Pattern[bytes]:
    words = sorted({*_of_modules(), *_of_objects(), *_modules()})
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\b".encode())


def may_need_lookups(source: bytes) -> bool:
    """Return whether a file may use a name that a library removed."""
    return _words().search(source) is not None


def add_lookups(tree: ast.Module) -> ast.ImportFrom | None:
    """Write the calls into a file of the program; return the import that they need.

    Args:
      tree: the module; it is changed.

    Returns:
      None if the file needs no call.
    """
    lookups = _ProgramLookups(tree)
    lookups.visit(tree)
    if not lookups.has_calls:
        return None
    return ast.ImportFrom(_LIBRARY_LOOKUP, [ast.alias("for_program", HELPER)], 0)


def with_library_lookups(
    tree: ast.Module, names: Names, guarded: Collection[int]
) -> ast.Module:
    """Return a module of a library that looks up the removed names that it uses.

    Args:
      tree: the module; it is changed.
      names: what its names mean.
      guarded: the ids of the nodes for whose failure it is prepared.
    """
    lookups = _LibraryLookups(names, guarded)
    lookups.visit(tree)
    if lookups.has_calls:
        helper = ast.ImportFrom(_LIBRARY_LOOKUP, [ast.alias("for_library", HELPER)], 0)
        put_first(tree, [helper])
    return ast.fix_missing_locations(tree)


def put_first(tree: ast.Module, helpers: Iterable[ast.stmt]) -> None:
    """Put statements at the top of a module, behind what must stay there.

    Args:
      tree: the module; it is changed.
      helpers: the statements; they have the place of its first line.
    """
    index = sum(1 for _ in itertools.takewhile(_comes_first, tree.body))
    start = ast.Pass(lineno=1, col_offset=0)
    tree.body[index:index] = [ast.copy_location(helper, start) for helper in helpers]


def is_lookup(node: ast.AST) -> TypeGuard[ast.Call]:
    """Return whether a node is the call that looks up an attribute."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "of"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == HELPER
    )


def _comes_first(statement: ast.stmt) -> bool:
    """Return whether it must stay at the top: a docstring, or `__future__`."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def import_by_calls(
    node: ast.Import,
    is_looked_up: Callable[[str], bool],
    call: Callable[[str, str], ast.Call],
) -> ast.AST | list[ast.stmt]:
    """Return an import with a statement for each name, or unchanged.

    Args:
      node: the import.
      is_looked_up: whether a call takes the place of the import of a module.
      call: makes it, of a method (`module` or `root`) and the name of the module.
    """
    if not any(is_looked_up(alias.name) for alias in node.names):
        return node
    statements: list[ast.stmt] = []
    for import_ in imports(node):
        if is_looked_up(import_.full):
            method = "module" if import_.alias.asname else "root"
            statements.append(bind(import_.bound, call(method, import_.full)))
        else:
            statements.append(ast.Import([import_.alias]))
    return [ast.copy_location(statement, node) for statement in statements]


class _Lookups(ast.NodeTransformer):
    """Replaces the imports of removed names by calls."""

    def __init__(self, names: Names) -> None:
        self.has_calls = False  # whether something was replaced
        self._names = names

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        """Leave a pattern as it is: it has no calls."""
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_Import(self, node: ast.Import) -> ast.AST | list[ast.stmt]:
        """Make a statement of each alias, in order."""
        return import_by_calls(node, _is_removed, self._call)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt]:
        """Make a statement of each name, in order."""
        if node.level or not node.module:
            return node
        statements: list[ast.stmt] = []
        is_changed = False
        for import_ in imports(node):
            if import_.bound == "*" and node.module in _starred_modules():
                free = sorted(self._names.scopes.free)
                call = self._call("star", node.module, global_names(), *free)
                statements.append(ast.Expr(call))
            elif _is_removed(node.module) or import_.full in _importable_names():
                call = self._call("name", node.module, import_.alias.name)
                statements.append(bind(import_.bound, call))
            else:
                statements.append(ast.ImportFrom(node.module, [import_.alias], 0))
                continue
            is_changed = True
        if not is_changed:
            return node
        return [ast.copy_location(statement, node) for statement in statements]

    def _call(self, method: str, *words: str | ast.expr) -> ast.Call:
        self.has_calls = True
        return call_of(ast.Name(HELPER, ast.Load()), method, *words)


class _ProgramLookups(_Lookups):
    """Replaces also what a file of the program may read of removed names."""

    def __init__(self, tree: ast.Module) -> None:
        super().__init__(Names(tree, ()))
        self._of_any = _of_objects() | _of_modules()
        self._aliases = set(self._aliases_in(tree))

    def _aliases_in(self, tree: ast.Module) -> Iterator[str]:
        """Yield the names of what is read of a module: `tfd = tfp.distributions`."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
                root = root_of(node.value)
                if isinstance(root, ast.Name) and self._names.scopes.may_be_module(
                    root
                ):
                    yield from (t.id for t in node.targets if isinstance(t, ast.Name))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Look up each attribute that has a removed name."""
        root, scopes = root_of(node), self._names.scopes
        is_of_module = isinstance(root, ast.Name) and (
            root.id in self._aliases or scopes.may_be_module(root)
        )
        self.generic_visit(node)
        known = self._of_any if is_of_module else _of_objects()
        if node.attr not in known or not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(self._call("of", node.value, node.attr), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Look up `getattr(module, name)` and `import_module("name")`."""
        self.generic_visit(node)
        if _is_removed(name := loaded_module(node)):
            return ast.copy_location(self._call("module", name), node)
        is_getattr = called_function(node) == "getattr" and not node.keywords
        if is_getattr and len(node.args) == 2:
            owner = node.args[0]
            if isinstance(owner, ast.Name) and self._names.scopes.may_be_module(owner):
                return ast.copy_location(self._call("of", *node.args), node)
        return node


class _LibraryLookups(_Lookups):
    """Replaces only what was removed for certain, and what nothing guards."""

    def __init__(self, names: Names, guarded: Collection[int]) -> None:
        super().__init__(names)
        self._guarded = guarded

    def visit(self, node: ast.AST) -> Any:
        """Visit each node that is not guarded."""
        return node if id(node) in self._guarded else super().visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Look up a removed name of a module."""
        full = self._names.canonical(node)
        if full not in restored_names.names() or not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        return ast.copy_location(self._call("of", node.value, node.attr), node)


def _is_removed(dotted: str) -> bool:
    """Return whether a library may have removed a whole module."""
    return dotted in _modules()


@functools.cache
def _modules() -> frozenset[str]:
    below = (n for n in restored_names.modules() if "." in n)
    rows = removed_in_libraries.removed_names()
    alone = (n for n, row in rows.items() if "." not in n and row.library == "Python")
    return frozenset(
        {*below, *alone} & {*restored_names.modules(), *restored_names.names()}
    )


@functools.cache
def _importable_names() -> frozenset[str]:
    names: set[str] = {*restored_names.names(), *restored_names.modules()}
    return frozenset(names | restored_arguments.FUNCTIONS)


@functools.cache
def _starred_modules() -> frozenset[str]:
    return frozenset(name.rpartition(".")[0] for name in _importable_names()) - {""}


def call_of(owner: ast.expr, method: str, *words: str | ast.expr) -> ast.Call:
    """Return the call of a method, with strings and expressions as its arguments."""
    arguments = [ast.Constant(w) if isinstance(w, str) else w for w in words]
    return ast.Call(ast.Attribute(owner, method, ast.Load()), arguments, [])


def global_names() -> ast.Call:
    """Return the call of `globals()`."""
    return ast.Call(ast.Name("globals", ast.Load()), [], [])


def bind(name: str, value: ast.expr) -> ast.Assign:
    """Return the statement that gives a value to a name."""
    return ast.Assign([ast.Name(name, ast.Store())], value)
