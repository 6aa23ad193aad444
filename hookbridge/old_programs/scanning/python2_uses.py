"""What Python 2 had and Python 3 can parse: its names, its methods and its lists."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from hookbridge.old_programs.reading.names import starred
from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.tf1_names.old_values import ITERATORS, VIEWS
from hookbridge.tf1_names.syntax import (
    called_function,
    called_method,
    nodes_inside,
    times_bound,
)

_BUILTINS = frozenset(
    {
        "apply",
        "basestring",
        "cmp",
        "coerce",
        "execfile",
        "long",
        "raw_input",
        "reduce",
        "reload",
        "unichr",
        "unicode",
        "xrange",
    }
)
# Method -> the number of its arguments, which tells it from `six.iteritems(values)`.
_METHODS = {
    "has_key": 1,
    "iteritems": 0,
    "iterkeys": 0,
    "itervalues": 0,
    "viewitems": 0,
    "viewkeys": 0,
    "viewvalues": 0,
}
# What may use a list.
_USES = frozenset({ast.Attribute, ast.Call, ast.Subscript})
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
# What is raised where something of Python 2 is not there.
_ERRORS = ("NameError", "AttributeError", "TypeError")


def python2_uses(module: Module) -> Iterator[tuple[ast.expr, str]]:
    """Yield the places that Python 3 stops at, and what is used there."""
    prepared = _prepared_nodes(module)
    for node, name in (*_removed_in_python3(module), *_lists(module)):
        if id(node) not in module.guarded and id(node) not in prepared:
            yield node, name


def _prepared_nodes(module: Module) -> frozenset[int]:
    """Return the ids of nodes in a `try` that catches the lack of a name."""
    return frozenset(
        id(part)
        for node in module.nodes
        if isinstance(node, ast.Try) and any(map(_is_prepared, node.handlers))
        for statement in node.body
        for part in ast.walk(statement)
    )


def _is_prepared(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler names an error of what is not there, or any error."""
    named = ast.unparse(handler.type) if handler.type else ""
    return not named or any(error in named for error in _ERRORS)


def _removed_in_python3(module: Module) -> Iterator[tuple[ast.expr, str]]:
    """Yield removed names and methods, where the program does not define them."""
    names = module.names
    # Any other module may give such a name.
    is_known = all(map(starred.is_followed, names.scopes.starred))
    builtins = _BUILTINS & names.scopes.free if is_known else frozenset()
    defined = {node.name for node in module.nodes if isinstance(node, ast.FunctionDef)}
    for node in module.nodes:
        if type(node) is ast.Name:
            if node.id in builtins:
                yield node, node.id
        elif type(node) is ast.Call and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name not in defined and _METHODS.get(name) == len(node.args):
                yield node, f".{name}()"


def _lists(module: Module) -> Iterator[tuple[ast.expr, str]]:
    """Use of a list, where Python 3 has an iterator or a view."""
    functions = ITERATORS & module.names.scopes.free
    # What a `DataFrame` calls its keys can be indexed.
    views = frozenset() if "pandas" in module.names.bound.values() else VIEWS
    has_held = False
    for node in module.nodes:
        if type(node) is ast.Assign:
            has_held = has_held or bool(_function(node.value, functions))
        elif type(node) in _USES and (used := _used_as_list(node)) is not None:
            made = _function(used, functions)
            if not (made or _is_length(node)):
                made = _view(used, views)
            if made:
                yield used, f"{made} as a list"
    if has_held:  # seldom: a scope is walked through for it
        for scope in (module.tree, *filter(_is_scope, module.nodes)):
            yield from _held_lists(list(nodes_inside(scope, _is_scope)), functions)


def _held_lists(
    nodes: list[ast.AST], functions: frozenset[str]
) -> Iterator[tuple[ast.expr, str]]:
    """Use of a list that a name holds, in the nodes of one scope."""
    held_functions = _held(nodes, functions)
    for node in nodes:
        used = _used_as_list(node) if held_functions else None
        if isinstance(used, ast.Name) and used.id in held_functions:
            yield used, f"{held_functions[used.id]} as a list"


def _is_scope(node: ast.AST) -> bool:
    """Return whether names that it binds are its own."""
    return isinstance(node, _SCOPES)


def _held(nodes: list[ast.AST], functions: frozenset[str]) -> dict[str, str]:
    """Return the names that a scope binds once, to what a function made.

    And that function.
    """
    stores = times_bound(nodes, with_parameters=False)
    made_by = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, made = node.targets[0].id, _function(node.value, functions)
            if made and stores[name] == 1:
                made_by[name] = made
    return made_by


def _used_as_list(node: ast.AST) -> ast.expr | None:
    """Return what has to be a sequence for an expression to have a value."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return node.value
    if isinstance(node, ast.Attribute) and node.attr == "sort":
        return node.value
    return node.args[0] if _is_length(node) else None


def _is_length(node: ast.AST) -> TypeGuard[ast.Call]:
    """Return whether an expression is `len(...)`, which a view has too."""
    return called_function(node) == "len" and len(getattr(node, "args", ())) == 1


def _function(node: ast.expr | None, functions: frozenset[str]) -> str:
    """Return the function that an expression calls, of some, or an empty string."""
    name = "" if node is None else called_function(node)
    return f"{name}(...)" if name in functions else ""


def _view(node: ast.expr | None, views: frozenset[str]) -> str:
    """Return the method of dictionaries that an expression calls, or ""."""
    if not isinstance(node, ast.Call) or node.args or node.keywords:
        return ""
    name = called_method(node)
    return f".{name}()" if name in views else ""
