"""Imports of dead names.

    -from tensorflow.python.estimator.model_fn import ModeKeys
    +from hookbridge.estimator import ModeKeys

The name that the import binds stays, so the code below it does not change. An import of
a module of which only parts live on goes, once all its uses are renamed. Imports from
`tf.contrib` for whose failure the program is prepared (`try ... except ImportError`)
stay as they are.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from hookbridge.migrate.fates import fate
from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.dead_imports import imported, lines_for
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "imports"


def prepare(context: Context) -> None:
    """Notes which names keep their meaning, so that no rule renames their uses."""
    for found in (one for node in context.import_nodes for one in imported(node)):
        guarded = context.is_guarded(found.node)
        lines = lines_for(found, context)
        if lines is None:
            if guarded and found.full.startswith("tf.contrib"):
                context.kept.add(found.bound)
        elif lines and lines != [f"import {found.bound}"]:
            context.kept.add(found.bound)
            new = fate(context.names.meant(found.full), context.target)
            if new is not None and found.bound in context.imports.bound:
                context.imports.bind(found.bound, new.living)
        elif not lines:
            context.imports.forget(found.bound)


def apply(
    old: cst.SimpleStatementLine, new: cst.SimpleStatementLine, context: Context
) -> Any:
    """Replaces the imports of one line."""
    lines: list[str] = []
    changed = False
    for small in old.body:
        replaced = _replaced(small, context)
        changed |= replaced is not None
        lines += [context.code(small).rstrip("; ")] if replaced is None else replaced
    if not changed:
        return new
    lines = list(dict.fromkeys(lines))
    context.edit(NAME, old, "\n".join(lines))
    if not lines:
        return _removed(old, new, context)
    statements = [
        cst.ensure_type(cst.parse_statement(line), cst.SimpleStatementLine)
        for line in lines
    ]
    statements[0] = statements[0].with_changes(leading_lines=new.leading_lines)
    statements[-1] = statements[-1].with_changes(
        trailing_whitespace=new.trailing_whitespace
    )
    return cst.FlattenSentinel(statements)


def _replaced(small: cst.BaseSmallStatement, context: Context) -> list[str] | None:
    """The lines for one import; None if it stays as it is."""
    if not isinstance(small, cst.Import | cst.ImportFrom):
        return None
    found = [(one, lines_for(one, context)) for one in imported(small)]
    if all(lines is None for _, lines in found):
        return None
    staying = [one.alias for one, lines in found if lines is None]
    result = []
    if staying:
        last = staying[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        kept = small.with_changes(names=[*staying[:-1], last])
        result.append(context.code(kept).rstrip("; "))
    for _, lines in found:
        result += lines or []
    return result


def _removed(
    old: cst.SimpleStatementLine, new: cst.SimpleStatementLine, context: Context
) -> Any:
    """Removes the line; writes `pass` if its block would be empty."""
    block = context.parent(old)
    if isinstance(block, cst.IndentedBlock) and len(block.body) == 1:
        return new.with_changes(body=[cst.Pass()])
    if any(line.comment for line in new.leading_lines):
        return new.with_changes(body=[cst.Pass()])
    return cst.RemoveFromParent()


RULE = RewriteRule(
    name=NAME,
    summary="Imports of names that died import the living ones.",
    nodes=(cst.SimpleStatementLine,),
    apply=apply,
    words=("tensorflow", "collections", "numpy", "time"),
    prepare=prepare,
)
