"""Code that a program runs only where a name or a module is there."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from hookbridge.old_programs.reading.names.conditions import Conditions
from hookbridge.old_programs.reading.names.import_statements import loaded_module
from hookbridge.tf1_names.syntax import last_name

# What is raised if a module or a name is missing.
OF_IMPORTS = frozenset({"ImportError", "ModuleNotFoundError"})
_NO_NAME = "AttributeError"
IsRemoved: TypeAlias = Callable[[ast.AST], bool]
# These catch that too, but most often stand around whole programs.
_ALL = frozenset({"Exception", "BaseException"})
# What has parts that may be left out.
_BLOCKS = frozenset(
    kind
    for kind in vars(ast).values()
    if isinstance(kind, type)
    and {"body", "orelse", "values"} & set(getattr(kind, "_fields", ()))
)
# Statements after which a block does not go on.
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def catches(handler: ast.ExceptHandler, errors: frozenset[str]) -> bool:
    """Return whether a handler names one of some errors, or any error at all."""
    return handler.type is None or bool(_named_errors(handler) & (errors | _ALL))


def _named_errors(handler: ast.ExceptHandler) -> set[str]:
    """Return the last parts of the names in what a handler catches."""
    nodes = () if handler.type is None else ast.walk(handler.type)
    return {last_name(node) for node in nodes} - {""}


def guarded_nodes(
    nodes: Sequence[ast.AST], conditions: Conditions, is_removed: IsRemoved
) -> frozenset[int]:
    """Return the ids of nodes that do not run, or have another way in the program.

    `is_removed` tells whether a part of the program has a removed name or module.
    """
    ids: set[int] = set()
    for node in nodes:
        if type(node) not in _BLOCKS:
            continue
        for part in _guarded_parts(node, conditions, is_removed):
            ids.update(map(id, ast.walk(part)))
    return frozenset(ids)


def _guarded_parts(
    node: ast.AST, conditions: Conditions, is_removed: IsRemoved
) -> Iterator[ast.AST]:
    """Yield the parts below a node that may be left out."""
    if isinstance(node, ast.Try):
        yield from _read_try(node, is_removed)
    elif isinstance(node, ast.If | ast.IfExp):
        yield from _not_taken(node, conditions)
    elif isinstance(node, ast.BoolOp):
        yield from _not_reached(node, conditions)
    for statements in (getattr(node, "body", None), getattr(node, "orelse", None)):
        if isinstance(statements, list):
            yield from _behind_the_end(statements, conditions)


def _not_taken(node: ast.If | ast.IfExp, conditions: Conditions) -> list[ast.AST]:
    """Return the branch that is never taken.

    Both, if only the program's run tells which.
    """
    body = node.body if isinstance(node, ast.If) else [node.body]
    orelse = node.orelse if isinstance(node, ast.If) else [node.orelse]
    outcome = conditions.outcome(node.test)
    if outcome is None:
        return [*body, *orelse] if conditions.depend_on_version(node.test) else []
    return [*(orelse if outcome else body)]


def _not_reached(node: ast.BoolOp, conditions: Conditions) -> list[ast.expr]:
    """Return what follows a part that may decide: `hasattr(a, "b") and a.b`."""
    enough = isinstance(node.op, ast.Or)
    for number, part in enumerate(node.values, 1):
        outcome = conditions.outcome(part)
        if outcome is enough or (
            outcome is None and conditions.depend_on_version(part)
        ):
            return node.values[number:]
    return []


def _behind_the_end(
    statements: Sequence[ast.stmt], conditions: Conditions
) -> Sequence[ast.stmt]:
    """Return what stands behind a branch that is always taken and leaves the block."""
    for number, statement in enumerate(statements, 1):
        if isinstance(statement, ast.If):
            outcome = conditions.outcome(statement.test)
            taken = statement.body if outcome else statement.orelse
            if outcome is not None and taken and isinstance(taken[-1], _ENDS):
                return statements[number:]
    return []


def _read_try(node: ast.Try, is_removed: IsRemoved) -> Iterator[ast.AST]:
    """Yield the guarded statements of a `try`, and those of handlers that never run."""
    errors = OF_IMPORTS | {_NO_NAME}
    of_names = tries_names(node)
    has_import = any(catches(handler, errors) for handler in node.handlers)
    parts = [
        statement
        for statement in node.body
        if of_names or (has_import and _imports(statement))
    ]
    yield from parts
    if parts and not any(map(is_removed, parts)):
        # What was tried is there, so that the other way is never taken.
        for handler in node.handlers:
            if _catches_only(handler, errors) or len(parts) == len(node.body):
                yield from handler.body


def tries_names(node: ast.Try) -> bool:
    """Return whether a program is prepared for each name in a `try` that is not there.

    A handler says so, or nothing but a missing name can fail there.
    """
    if any(h.type and _NO_NAME in ast.unparse(h.type) for h in node.handlers):
        return True
    catches_it = any(catches(h, frozenset({_NO_NAME})) for h in node.handlers)
    return catches_it and all(map(_only_names, node.body))


def _only_names(statement: ast.stmt) -> bool:
    """Return whether a statement imports, or gives another name to what has one."""
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.Pass):
        return True
    return isinstance(statement, ast.Assign) and all(
        isinstance(part, ast.Tuple | ast.Attribute | ast.Name | ast.expr_context)
        for part in ast.walk(statement.value)
    )


def _imports(statement: ast.stmt) -> bool:
    """Return whether a statement imports a module, also by a call."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return True
    is_plain = isinstance(statement, ast.Assign | ast.Expr)
    return is_plain and any(map(loaded_module, ast.walk(statement)))


def _catches_only(handler: ast.ExceptHandler, errors: frozenset[str]) -> bool:
    """Return whether a handler names some errors, and no others."""
    named = _named_errors(handler)
    return bool(named) and named <= errors
