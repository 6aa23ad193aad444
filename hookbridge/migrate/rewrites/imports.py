"""Imports of dead names.

    -from tensorflow.python.estimator.model_fn import ModeKeys
    +from hookbridge.estimator import ModeKeys

The name that the import binds stays, so the code below it does not change. An import of
a module of which only parts live on goes, once all its uses are renamed. Imports from
`tf.contrib` for whose failure the program is prepared (`try ... except ImportError`)
stay as they are.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import libcst as cst

from hookbridge.migrate.fates import fate
from hookbridge.migrate.reading.names import canonical
from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.imports import module_of
from hookbridge.migrate.rewriting.renaming import living
from hookbridge.migrate.rewriting.rule import RewriteRule
from hookbridge.migrate.rewriting.tree_names import dotted, imported_as

NAME = "imports"
# Below these no `from X import` works: Python's import system has no such modules.
_NO_MODULES = (
    *("hookbridge.estimator.v1", "hookbridge.estimator.experimental"),
    *("hookbridge.estimator.export", "hookbridge.contrib"),
)


@dataclass(frozen=True)
class Imported:
    """One name that an import binds."""

    node: cst.Import | cst.ImportFrom
    alias: cst.ImportAlias  # the part of it that binds the name
    bound: str
    full: str  # the canonical dotted name of what is imported


def imported(node: cst.CSTNode) -> Iterator[Imported]:
    """Each name that an import binds; nothing for other nodes."""
    if isinstance(node, cst.Import):
        for alias in node.names:
            name = dotted(alias.name) or ""
            bound = imported_as(alias) or name.partition(".")[0]
            yield Imported(node, alias, bound, canonical(name))
    elif (
        isinstance(node, cst.ImportFrom)
        and node.module is not None
        and not node.relative
        and not isinstance(node.names, cst.ImportStar)
    ):
        for alias in node.names:
            if isinstance(alias.name, cst.Name):
                bound = imported_as(alias) or alias.name.value
                full = canonical(f"{dotted(node.module)}.{alias.name.value}")
                yield Imported(node, alias, bound, full)


def lines_for(name: Imported, context: Context) -> list[str] | None:
    """The lines that replace one name of an import; None leaves it as it is."""
    full = context.names.meant(name.full)
    become = context.fate(full)
    if become is None:
        return None
    is_contrib = full.startswith("tf.contrib")
    if context.is_guarded(name.node) and (is_contrib or become.code == "LOST_NAME"):
        return None
    if isinstance(name.node, cst.Import) and imported_as(name.alias) is None:
        # `import tensorflow.contrib.slim` binds `tensorflow`; uses are renamed.
        root = name.bound
        return [f"import {root}"] if root == "tensorflow" else None
    is_carried = become.living.startswith("hookbridge.contrib")
    if become.living and not is_carried:
        if become.living == full:
            return None
        return _lines(name.bound, become.living, context)
    if _all_uses_are_renamed(name, context):
        return []
    return _lines(name.bound, become.living, context) if is_carried else None


def _lines(bound: str, name: str, context: Context) -> list[str]:
    """Lines that bind a name to a living one."""
    parent, _, last = name.rpartition(".")
    if hasattr(builtins, name):
        return [] if bound == name else [f"{bound} = {name}"]
    if not parent:
        return [f"import {name}" if bound == name else f"import {name} as {bound}"]
    if parent.startswith(_NO_MODULES):
        hb = context.imports.here("hookbridge")
        rest = name.partition(".")[2]
        return [f"import hookbridge as {hb}", f"{bound} = {hb}.{rest}"]
    root, _, rest = parent.partition(".")
    parent = f"{module_of(root)}.{rest}" if rest else module_of(root)
    tail = "" if bound == last else f" as {bound}"
    return [f"from {parent} import {last}{tail}"]


def _all_uses_are_renamed(name: Imported, context: Context) -> bool:
    """Whether nothing needs the imported name once the rules have renamed its uses."""
    uses = [
        chain
        for chain in context.chains
        if (dotted(chain) or "").partition(".")[0] == name.bound
    ]
    for use in uses:
        new = living(use, context) if isinstance(use, cst.Attribute) else None
        if new is None or new.code not in context.codes:
            return False
    return bool(uses)


def prepare(context: Context) -> None:
    """Notes which names keep their meaning, so that no rule renames their uses."""
    for name in (one for node in context.import_nodes for one in imported(node)):
        guarded = context.is_guarded(name.node)
        lines = lines_for(name, context)
        if lines is None:
            if guarded and name.full.startswith("tf.contrib"):
                context.kept.add(name.bound)
        elif lines and lines != [f"import {name.bound}"]:
            context.kept.add(name.bound)
            new = fate(context.names.meant(name.full), context.target)
            if new is not None and name.bound in context.imports.bound:
                context.imports.bind(name.bound, new.living)
        elif not lines:
            context.imports.forget(name.bound)


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
    pairs = [(one, lines_for(one, context)) for one in imported(small)]
    if all(lines is None for _, lines in pairs):
        return None
    staying = [one.alias for one, lines in pairs if lines is None]
    result = []
    if staying:
        last = staying[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        rest = small.with_changes(names=[*staying[:-1], last])
        result.append(context.code(rest).rstrip("; "))
    for _, lines in pairs:
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
