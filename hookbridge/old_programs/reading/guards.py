"""Code that a program runs only where a name or a module is there."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

# What is raised if a module or a name is missing.
OF_IMPORTS = frozenset({"ImportError", "ModuleNotFoundError"})
_NO_NAME = "AttributeError"
# What code asks that has branches for other versions of TensorFlow or of Python.
_VERSIONS = frozenset(
    {"__version__", "VERSION", "version_info", "hexversion", "PY2", "PY3"}
)
IsDead: TypeAlias = Callable[[ast.AST], bool]
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


def guarded(nodes: Sequence[ast.AST], is_dead: IsDead) -> frozenset[int]:
    """The ids of the nodes that the program guards: it has another way without them.

    `is_dead` tells whether a part of the program has a name or a module that is gone.
    """
    ids: set[int] = set()
    for node in nodes:
        for statement in _guarded_parts(node, is_dead):
            ids.update(map(id, ast.walk(statement)))
    return frozenset(ids)


def _guarded_parts(node: ast.AST, is_dead: IsDead) -> Iterator[ast.AST]:
    if isinstance(node, ast.Try):
        yield from _read_try(node, is_dead)
    elif isinstance(node, ast.If) and _asks(node.test):
        yield from (*node.body, *node.orelse)
    elif isinstance(node, ast.IfExp) and _asks(node.test):
        yield from (node.body, node.orelse)


def _read_try(node: ast.Try, is_dead: IsDead) -> Iterator[ast.AST]:
    """The guarded statements of a `try`, and those of handlers that never run."""
    of_names = [h for h in node.handlers if h.type and _NO_NAME in ast.unparse(h.type)]
    errors = OF_IMPORTS | {_NO_NAME}
    has_import = any(catches(handler, errors) for handler in node.handlers)
    parts = [
        statement
        for statement in node.body
        if of_names
        or (has_import and isinstance(statement, ast.Import | ast.ImportFrom))
    ]
    yield from parts
    if parts and not any(map(is_dead, parts)):
        # What was tried is there, so that the other way is never taken.
        for handler in node.handlers:
            if _catches_only(handler, errors) or len(parts) == len(node.body):
                yield from handler.body


def _catches_only(handler: ast.ExceptHandler, errors: frozenset[str]) -> bool:
    """Whether a handler names some errors, and no others."""
    if handler.type is None:
        return False
    named = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in ast.walk(handler.type)
        if isinstance(node, ast.Attribute | ast.Name)
    }
    return bool(named) and named <= errors


def _asks(test: ast.expr) -> bool:
    """Whether a condition asks for a name of a module, or for a version."""
    nodes = list(ast.walk(test))
    calls = {getattr(n.func, "id", "") for n in nodes if isinstance(n, ast.Call)}
    attributes = {n.attr for n in nodes if isinstance(n, ast.Attribute)}
    names = {n.id for n in nodes if isinstance(n, ast.Name)}
    return bool(calls & {"hasattr", "dir"} or (attributes | names) & _VERSIONS)
