"""Where a module only reads `sys.modules`, so that its own names stay as they are."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_MODULES = ("meta_path", "modules")
# Functions that look at the names of modules, or at names in one, and change nothing.
_LOOKING = frozenset(
    {"dir", "getattr", "hasattr", "len", "list", "set", "sorted", "tuple"}
)


def is_of_sys(node: ast.AST) -> bool:
    """Return whether a node is `sys.modules`, or `sys.meta_path`."""
    is_attribute = isinstance(node, ast.Attribute) and node.attr in _MODULES
    return is_attribute and getattr(getattr(node, "value", None), "id", "") == "sys"


def only_read(nodes: Iterable[ast.AST]) -> set[int]:
    """Return the ids of the `sys.modules` in nodes that are only read.

    `module = sys.modules[__name__]` may be written to, and is left out.
    """
    return {id(part) for node in nodes for part in _read_by(node) if is_of_sys(part)}


def _read_by(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a node only reads, or reads an entry of."""
    if isinstance(node, ast.Compare):
        yield from node.comparators  # `name in sys.modules`
    elif isinstance(node, ast.For | ast.comprehension):
        yield node.iter
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        if _is_text(node.slice):
            yield node.value  # another module
    elif isinstance(node, ast.Call):
        yield from _read_by_call(node)
    elif isinstance(node, ast.Attribute) and _is_looking(node):
        yield from _owner(node.value)  # `sys.modules[name].__doc__`


def _is_looking(node: ast.Attribute) -> bool:
    """Return whether an attribute is read, and is no dictionary of names."""
    return isinstance(node.ctx, ast.Load) and node.attr != "__dict__"


def _read_by_call(call: ast.Call) -> Iterator[ast.AST]:
    """Yield what a call only reads: `sys.modules.get("name")`, `list(sys.modules)`."""
    function, arguments = call.func, call.args
    if isinstance(function, ast.Attribute):
        is_text = len(arguments) > 0 and _is_text(arguments[0])
        if function.attr == "keys" or (function.attr == "get" and is_text):
            yield function.value
    elif isinstance(function, ast.Name) and function.id in _LOOKING and arguments:
        yield arguments[0]
        yield from _owner(arguments[0])


def _owner(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what an entry is read of: the first part of `sys.modules[name]`."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield node.value


def _is_text(node: ast.AST) -> bool:
    """Return whether a node is a string, such as the name of another module."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
