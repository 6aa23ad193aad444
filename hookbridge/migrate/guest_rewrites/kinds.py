"""Whether an expression is a hook, a callback or a listener."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from hookbridge.migrate.guest_rewrites.native_classes import NativeClasses
from hookbridge.migrate.rewriting.context import Context


def kind_of(node: cst.BaseExpression, context: Context) -> str | None:
    """ "hook", "listener", "callback", or None where it is not certain."""
    if isinstance(node, cst.Name):
        value = context.value_of(node.value)
        return None if value is None else kind_of(value, context)
    if not isinstance(node, cst.Call):
        return None
    return _kind_of_class(node.func, context)


def _kind_of_class(node: cst.BaseExpression, context: Context) -> str | None:
    own = node.value if isinstance(node, cst.Name) else ""
    if own in context.state(NativeClasses).chosen:
        return "callback"
    dotted = f"{context.source.dotted}.{own}" if own else ""
    return context.guests.kind(context.names.raw(node), dotted)


def items(
    node: cst.BaseExpression, context: Context
) -> list[cst.BaseExpression] | None:
    """The items of a list of guests that the code shows; None if it shows no list.

    Of the sum of two lists, those of a list that is not shown are missing.
    """
    if isinstance(node, cst.Name):
        value = context.value_of(node.value)
        if isinstance(value, cst.List | cst.Tuple | cst.BinaryOperation):
            return items(value, context)
        return None
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        parts = [items(side, context) for side in (node.left, node.right)]
        return [item for part in parts for item in part or []]
    if isinstance(node, cst.List | cst.Tuple):
        return list(_values(node))
    return None


def _values(node: cst.List | cst.Tuple) -> Iterator[cst.BaseExpression]:
    for element in node.elements:
        yield element.value
