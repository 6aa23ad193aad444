"""The living name for a dead one in the syntax tree."""

from __future__ import annotations

import libcst as cst

from hookbridge.migrate.fates import Fate
from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.tree_names import dotted


def living(node: cst.Attribute, context: Context) -> Fate | None:
    """The fate of an outermost chain of names, if a rename is all that it needs."""
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
    if name is None or any(
        f"{name}.".startswith(f"{own}.") for own in context.place.meaning.written
    ):
        return None
    outcome = context.fate(name)
    return outcome if outcome is not None and outcome.living else None
