"""Functions of dotted names and of syntax trees that all rooms use."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import UnionType
from typing import TypeAlias

# What `isinstance` takes.
Kinds: TypeAlias = type[ast.AST] | UnionType


def is_below(name: str, place: str) -> bool:
    """Return whether a dotted name is a place, or has it as its first parts."""
    return f"{name}.".startswith(f"{place}.")


def beginnings(name: str) -> Iterator[tuple[str, str]]:
    """Yield the beginnings of a dotted name, the longest first, each with the rest."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        yield ".".join(parts[:end]), ".".join(parts[end:])


def with_beginning(name: str, places: Mapping[str, str]) -> str:
    """Return a name whose beginning has another place now; empty if it has none.

    Args:
      name: the dotted name.
      places: `{a name, or the first parts of names: the place of it}`.
    """
    old = next((old for old in places if is_below(name, old)), None)
    return "" if old is None else places[old] + name[len(old) :]


def last_name(node: ast.AST) -> str:
    """Return the last part of a name; empty for other expressions."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def parts_of(node: ast.AST) -> tuple[ast.AST, list[str]]:
    """Return what a dotted name begins with, and the attributes after it."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return node, parts


def root_of(node: ast.AST) -> ast.AST:
    """Return the first part of a dotted name."""
    return parts_of(node)[0]


def enclosing(
    node: ast.AST, kinds: Kinds, parents: Mapping[ast.AST, ast.AST]
) -> ast.AST:
    """Return a node, or the innermost one around it, that is of some kinds.

    Args:
      node: the node at which to begin.
      kinds: the kinds, of which one is around every node.
      parents: `{node: the node that holds it}`.
    """
    while not isinstance(node, kinds):
        node = parents[node]
    return node


def nodes_inside(node: ast.AST, is_end: Callable[[ast.AST], bool]) -> Iterator[ast.AST]:
    """Yield the nodes inside of a node, each before what is inside of it.

    Args:
      node: the node, which is not among them.
      is_end: whether nothing inside of a node counts.
    """
    for child in ast.iter_child_nodes(node):
        yield child
        if not is_end(child):
            yield from nodes_inside(child, is_end)


def called_method(call: ast.Call) -> str:
    """Return the name of the method that is called; empty for a plain function."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def called_function(node: ast.AST) -> str:
    """Return the name of the plain function that is called; empty for all else."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.id if isinstance(function, ast.Name) else ""


def keywords(call: ast.Call) -> dict[str, ast.expr]:
    """Return the arguments of a call by their names; `**options` has an empty one."""
    return {keyword.arg or "": keyword.value for keyword in call.keywords}


def keyword(call: ast.Call, *names: str) -> list[ast.expr]:
    """Return the arguments that a call gives by one of some names."""
    return [item.value for item in call.keywords if item.arg in names]


def text_of(node: ast.AST | None) -> str:
    """Return the string of a constant; empty for all else."""
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else ""


def times_bound(
    nodes: Iterable[ast.AST], *, with_parameters: bool = True
) -> Counter[str]:
    """Count how often each name is bound.

    Args:
      nodes: the nodes of a scope, or of a file.
      with_parameters: whether a parameter is bound once by its function.
    """
    times: Counter[str] = Counter()
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            times[node.id] += 1
        elif with_parameters and isinstance(node, ast.arg):
            times[node.arg] += 1
    return times
