"""Lets a program's file ask `reading` for the names that libraries removed.

`np.float` becomes `__hookbridge_given__.of(np, "float")`, at the same place in the
file, so that tracebacks show the right lines. The modules themselves stay as they are,
and so does every file that does not ask.
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
from hookbridge.old_programs.reading.names.import_statements import imports, loaded
from hookbridge.old_programs.run.given_back import (
    removed_arguments,
    removed_names,
    removed_randomness,
)
from hookbridge.tf1_names import removed_in_libraries
from hookbridge.tf1_names.syntax import called_function, root_of

HELPER = "__hookbridge_given__"
_READING = "hookbridge.old_programs.run.given_back.reading"


@functools.cache
def _of_modules() -> frozenset[str]:
    """Return the last parts of what modules no longer have, or take otherwise."""
    return frozenset(name.rpartition(".")[2] for name in _imported() if "." in name)


@functools.cache
def _of_objects() -> frozenset[str]:
    """Return the names of methods that classes no longer have, or that take more."""
    return removed_attributes.names() | removed_randomness.OLD_CALLS.keys()


@functools.cache
def _words() -> re.Pattern[bytes]:
    words = sorted({*_of_modules(), *_of_objects(), *_modules()})
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\b".encode())


def may_ask(source: bytes) -> bool:
    """Return whether a file may use one of these names."""
    return _words().search(source) is not None


def asked(tree: ast.Module) -> ast.ImportFrom | None:
    """Let a module ask; return the import that it begins with, None if it needs none.

    Args:
      tree: the module; it is changed.
    """
    asking = _Asking(tree)
    asking.visit(tree)
    if not asking.has_asked:
        return None
    return ast.ImportFrom(_READING, [ast.alias("for_program", HELPER)], 0)


def asked_by_name(
    tree: ast.Module, names: Names, guarded: Collection[int]
) -> ast.Module:
    """Return a module of a library, which asks for removed names that it means.

    Args:
      tree: the module; it is changed.
      names: what its names mean.
      guarded: the ids of the nodes for whose failure it is prepared.
    """
    asking = _AskingByName(names, guarded)
    asking.visit(tree)
    if asking.has_asked:
        helper = ast.ImportFrom(_READING, [ast.alias("for_library", HELPER)], 0)
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


def is_asked(node: ast.AST) -> TypeGuard[ast.Call]:
    """Return whether a node is what an attribute of a module becomes."""
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


def answered(
    node: ast.Import,
    is_answered: Callable[[str], bool],
    call: Callable[[str, str], ast.Call],
) -> ast.AST | list[ast.stmt]:
    """Return an import with a statement for each name, or unchanged.

    Args:
      node: the import.
      is_answered: whether a call takes the place of the import of a module.
      call: makes it, of a method (`module` or `root`) and the name of the module.
    """
    if not any(is_answered(alias.name) for alias in node.names):
        return node
    statements: list[ast.stmt] = []
    for import_ in imports(node):
        if is_answered(import_.full):
            method = "module" if import_.alias.asname else "root"
            statements.append(bind(import_.bound, call(method, import_.full)))
        else:
            statements.append(ast.Import([import_.alias]))
    return [ast.copy_location(statement, node) for statement in statements]


class _Asking(ast.NodeTransformer):
    """Replaces what a module reads of removed names."""

    def __init__(self, tree: ast.Module) -> None:
        self.has_asked = False
        self._of_any = _of_objects() | _of_modules()
        self._names = Names(tree, ())
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

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        """Leave a pattern as it is: it has no calls."""
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Ask for each attribute of such a name."""
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
        """Ask for `getattr(module, name)` and `import_module("name")`."""
        self.generic_visit(node)
        if _is_removed(name := loaded(node)):
            return ast.copy_location(self._call("module", name), node)
        is_asking = called_function(node) == "getattr" and not node.keywords
        if is_asking and len(node.args) == 2:
            owner = node.args[0]
            if isinstance(owner, ast.Name) and self._names.scopes.may_be_module(owner):
                return ast.copy_location(self._call("of", *node.args), node)
        return node

    def visit_Import(self, node: ast.Import) -> ast.AST | list[ast.stmt]:
        """Each alias becomes a statement, in order."""
        return answered(node, _is_removed, self._call)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt]:
        """Each name becomes a statement, in order."""
        if node.level or not node.module:
            return node
        statements: list[ast.stmt] = []
        is_changed = False
        for import_ in imports(node):
            if import_.bound == "*" and node.module in _starred():
                free = sorted(self._names.scopes.free)
                call = self._call("star", node.module, global_names(), *free)
                statements.append(ast.Expr(call))
            elif _is_removed(node.module) or import_.full in _imported():
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
        self.has_asked = True
        return call_of(ast.Name(HELPER, ast.Load()), method, *words)


class _AskingByName(_Asking):
    """Replaces only what was removed for certain, and what nothing guards."""

    def __init__(self, names: Names, guarded: Collection[int]) -> None:
        self.has_asked = False
        self._names = names
        self._guarded = guarded

    def visit(self, node: ast.AST) -> Any:
        """Visit each node."""
        return node if id(node) in self._guarded else super().visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Ask for a removed name of a module."""
        full = self._names.canonical(node)
        if full not in removed_names.names() or not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        return ast.copy_location(self._call("of", node.value, node.attr), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Change the parts of a call, not the call itself."""
        return self.generic_visit(node)


def _is_removed(dotted: str) -> bool:
    """Return whether a library may have removed a whole module."""
    return dotted in _modules()


@functools.cache
def _modules() -> frozenset[str]:
    below = (n for n in removed_names.modules() if "." in n)
    rows = removed_in_libraries.removed_names()
    alone = (n for n, row in rows.items() if "." not in n and row.library == "Python")
    return frozenset(
        {*below, *alone} & {*removed_names.modules(), *removed_names.names()}
    )


@functools.cache
def _imported() -> frozenset[str]:
    names: set[str] = {*removed_names.names(), *removed_names.modules()}
    return frozenset(names | removed_arguments.FUNCTIONS)


@functools.cache
def _starred() -> frozenset[str]:
    return frozenset(name.rpartition(".")[0] for name in _imported()) - {""}


def call_of(owner: ast.expr, method: str, *words: str | ast.expr) -> ast.Call:
    """Return the call of a method, with texts and expressions as its arguments."""
    arguments = [ast.Constant(w) if isinstance(w, str) else w for w in words]
    return ast.Call(ast.Attribute(owner, method, ast.Load()), arguments, [])


def global_names() -> ast.Call:
    """Return the call of `globals()`."""
    return ast.Call(ast.Name("globals", ast.Load()), [], [])


def bind(name: str, value: ast.expr) -> ast.Assign:
    """Return the statement that gives a value to a name."""
    return ast.Assign([ast.Name(name, ast.Store())], value)
