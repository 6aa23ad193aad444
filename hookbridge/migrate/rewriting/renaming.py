"""Replaces dead names by living ones; the rules for names share this."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libcst as cst

from hookbridge.migrate.contrib_names import carried_name
from hookbridge.migrate.names import canonical
from hookbridge.migrate.new_names import CARRIED, NewName, new_name
from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.tree_names import dotted

# Their living names take other arguments; the versions in `hb.contrib` take the old.
_OTHER_ARGUMENTS = ("tf.contrib.distribute", "tf.contrib.cluster_resolver")


def renaming(rule: str, codes: tuple[str, ...]) -> Callable[[Any, Any, Context], Any]:
    """The `apply` of a rule that renames names whose findings have one of `codes`."""

    def apply(old: cst.Attribute, new: cst.Attribute, context: Context) -> Any:
        found = living(old, context)
        if found is None or found.code not in codes:
            return new
        text = _by_own_import(old, found.dotted, context)
        text = text or context.imports.expression(found.dotted)
        if text == dotted(old):
            return new
        after = cst.parse_expression(text)
        after = after.with_changes(lpar=new.lpar, rpar=new.rpar)
        context.edit(rule, old, after)
        return after

    return apply


def _by_own_import(node: cst.Attribute, living: str, context: Context) -> str:
    """The living name, by an import inside a function; empty for any other import.

    The program may run without TensorFlow until it calls such a function.
    """
    root: cst.BaseExpression = node
    while isinstance(root, cst.Attribute):
        root = root.value
    module = context.names.of(root)
    if module is None or not living.startswith(f"{module}."):
        return ""
    root_name = dotted(root) or ""
    if canonical(context.imports.bound.get(root_name, "")) == module:
        return ""
    return root_name + living[len(module) :]


def living(node: cst.Attribute, context: Context) -> NewName | None:
    """The living name of an outermost chain of names; None if it may stay."""
    above = context.parent(node)
    if isinstance(above, cst.Attribute) and above.value is node:
        return None  # a part of a longer name
    chain = dotted(node)
    if chain is None or chain.partition(".")[0] in context.kept:
        return None
    if isinstance(above, cst.AssignTarget | cst.Del):
        return None
    inside: cst.CSTNode | None = above
    while isinstance(inside, cst.Attribute | cst.ImportAlias | cst.AsName):
        inside = context.parent(inside)
    if isinstance(inside, cst.Import | cst.ImportFrom):
        return None
    name = context.names.of(node)
    if name is None:
        return None
    is_called = isinstance(above, cst.Call) and above.func is node and above.args
    if is_called and name.startswith(_OTHER_ARGUMENTS):
        carried = carried_name(name)
        return None if carried is None else NewName(CARRIED, carried)
    return new_name(name, context.target)
