"""Code that a program runs only where a name or a module is there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from hookbridge.old_programs.names.resolution import MODULES_WITH_REMOVED_NAMES

# What is raised if a module or a name is missing.
OF_IMPORTS = frozenset({"ImportError", "ModuleNotFoundError"})
_NO_NAME = "AttributeError"
# These catch that too, but most often stand around whole programs.
_ALL = frozenset({"Exception", "BaseException"})


def catches(handler: ast.ExceptHandler, errors: frozenset[str]) -> bool:
    """Whether a handler names one of some errors, or any error at all."""
    if handler.type is None:
        return True
    named = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in ast.walk(handler.type)
        if isinstance(node, ast.Attribute | ast.Name)
    }
    return bool(named & (errors | _ALL))


def guarded(nodes: Sequence[ast.AST]) -> frozenset[int]:
    """The ids of the nodes that the program guards: it has another way without them."""
    ids: set[int] = set()
    for node in nodes:
        for statement in _guarded_parts(node):
            ids.update(map(id, ast.walk(statement)))
    return frozenset(ids)


def _guarded_parts(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Try):
        # `from collections import Mapping`, after the place of today was tried.
        for statement in (one for h in node.handlers for one in h.body):
            if getattr(statement, "module", None) in MODULES_WITH_REMOVED_NAMES:
                yield statement
        errors = OF_IMPORTS | {_NO_NAME}
        has_import = any(catches(h, errors) for h in node.handlers)
        has_all = any(h.type and _NO_NAME in ast.unparse(h.type) for h in node.handlers)
        for statement in node.body:
            is_import = isinstance(statement, ast.Import | ast.ImportFrom)
            if has_all or (has_import and is_import):
                yield statement
    elif isinstance(node, ast.If) and _asks(node.test):
        yield from (*node.body, *node.orelse)
    elif isinstance(node, ast.IfExp) and _asks(node.test):
        yield from (node.body, node.orelse)


def _asks(test: ast.expr) -> bool:
    """Whether a condition asks for a name of a module, or for a version."""
    nodes = list(ast.walk(test))
    calls = {getattr(n.func, "id", "") for n in nodes if isinstance(n, ast.Call)}
    attributes = {n.attr for n in nodes if isinstance(n, ast.Attribute)}
    return bool(calls & {"hasattr", "dir"} or attributes & {"__version__", "VERSION"})
