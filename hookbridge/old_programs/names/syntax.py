"""Questions to dotted names and to the syntax tree that all rooms ask."""

from __future__ import annotations

import ast


def is_below(name: str, place: str) -> bool:
    """Return whether a dotted name is a place, or has it as its first parts."""
    return f"{name}.".startswith(f"{place}.")


def last_name(node: ast.AST) -> str:
    """Return the last part of a name; empty for other expressions."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
