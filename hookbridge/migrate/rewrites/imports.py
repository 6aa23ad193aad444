"""Imports of dead names.

    -from tensorflow.python.estimator.model_fn import ModeKeys
    +from hookbridge.estimator import ModeKeys

The name that the import binds stays, so the code below it does not change. An import of
a module of which only parts live on goes, once all its uses are renamed. Imports from
`tf.contrib` for whose failure the program is prepared (`try ... except ImportError`)
stay as they are.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import NamedTuple

from hookbridge.migrate.fates import fate
from hookbridge.migrate.reading.names import canonical
from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.imports import module_of
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "imports"
# Below these no `from X import` works: Python's import system has no such modules.
_NO_MODULES = (
    *("hookbridge.estimator.v1", "hookbridge.estimator.experimental"),
    *("hookbridge.estimator.export", "hookbridge.contrib"),
)


class Imported(NamedTuple):
    """One name that an import binds."""

    node: ast.Import | ast.ImportFrom
    alias: ast.alias  # the part of it that binds the name
    bound: str
    full: str  # the canonical dotted name of what is imported


def imported(node: ast.AST) -> Iterator[Imported]:
    """Each name that an import binds; nothing for other nodes."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            yield Imported(node, alias, bound, canonical(alias.name))
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for alias in node.names:
            if alias.name != "*":
                full = canonical(f"{node.module}.{alias.name}")
                yield Imported(node, alias, alias.asname or alias.name, full)


def lines_for(name: Imported, context: Context) -> list[str] | None:
    """The lines that replace one name of an import; None leaves it as it is."""
    full = context.meant(name.full)
    become = context.fate(full)
    if become is None:
        return None
    is_contrib = full.startswith("tf.contrib")
    if context.is_guarded(name.node) and (is_contrib or become.code == "LOST_NAME"):
        return None
    if isinstance(name.node, ast.Import) and name.alias.asname is None:
        # `import tensorflow.contrib.slim` binds `tensorflow`; uses are renamed.
        return ["import tensorflow"] if name.bound == "tensorflow" else None
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
    root, dot, rest = parent.partition(".")
    tail = "" if bound == last else f" as {bound}"
    return [f"from {module_of(root)}{dot}{rest} import {last}{tail}"]


def _all_uses_are_renamed(name: Imported, context: Context) -> bool:
    """Whether nothing needs the imported name once the rules have renamed its uses."""
    is_used = False
    for node in context.source.source.nodes:
        if isinstance(node, ast.Name) and node.id == name.bound:
            is_used = True
            use: ast.AST = node
            while context.is_part(use):
                use = context.parents[use]
            new = context.living(use) if isinstance(use, ast.Attribute) else None
            if new is None or new.code not in context.codes:
                return False
    return is_used


def prepare(context: Context) -> None:
    """Notes which names keep their meaning, so that no rule renames their uses."""
    bound = context.imports.bound
    for name in (one for node in context.source.source.nodes for one in imported(node)):
        lines = lines_for(name, context)
        if lines is None:
            if context.is_guarded(name.node) and name.full.startswith("tf.contrib"):
                context.kept.add(name.bound)
        elif lines and lines != [f"import {name.bound}"]:
            context.kept.add(name.bound)
            new = fate(context.meant(name.full), context.target)
            if new is not None and name.bound in bound:
                bound[name.bound] = new.living
        elif not lines:
            bound.pop(name.bound, None)


def apply(node: ast.Import | ast.ImportFrom, context: Context) -> None:
    """Replaces one import."""
    pairs = [(one, lines_for(one, context)) for one in imported(node)]
    if all(lines is None for _, lines in pairs):
        return
    lines = [line for _, held in pairs for line in held or ()]
    staying = [one.alias for one, held in pairs if held is None]
    if isinstance(node, ast.Import):
        rest: ast.stmt = ast.Import(staying)
    else:
        rest = ast.ImportFrom(node.module, staying, 0)
    lines = [ast.unparse(rest), *lines] if staying else lines
    context.replace_statement(NAME, node, list(dict.fromkeys(lines)))


RULE = RewriteRule(
    name=NAME,
    summary="Imports of names that died import the living ones.",
    nodes=(ast.Import, ast.ImportFrom),
    apply=apply,
    words=("tensorflow", "collections", "numpy", "time"),
    prepare=prepare,
)
