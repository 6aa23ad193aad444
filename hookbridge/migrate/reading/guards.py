"""Code that a program runs only where a name or a module is there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from hookbridge.migrate.fates import LOSING

# What is raised if a module or a name is missing.
OF_IMPORTS = frozenset({"ImportError", "ModuleNotFoundError"})
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
            if getattr(statement, "module", None) in LOSING:
                yield statement
        for statement in node.body:
            is_import = isinstance(statement, ast.Import | ast.ImportFrom)
            if (
                is_import
                and any(
                    catches(h, OF_IMPORTS | {"AttributeError"}) for h in node.handlers
                )
            ) or any(_names(h, "AttributeError") for h in node.handlers):
                yield statement
    elif isinstance(node, ast.If) and _asks(node.test):
        yield from (*node.body, *node.orelse)
    elif isinstance(node, ast.IfExp) and _asks(node.test):
        yield from (node.body, node.orelse)


def _names(handler: ast.ExceptHandler, error: str) -> bool:
    return handler.type is not None and error in ast.unparse(handler.type)


def _asks(test: ast.expr) -> bool:
    """Whether a condition asks for a name of a module, or for a version."""
    for node in ast.walk(test):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("hasattr", "dir"):
                return True
        elif isinstance(node, ast.Attribute) and node.attr in (
            "__version__",
            "VERSION",
        ):
            return True
    return False
