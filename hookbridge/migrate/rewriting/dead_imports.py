"""The lines that replace an import that the target lacks."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from hookbridge.migrate.reading.names import canonical
from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.imports import module_of
from hookbridge.migrate.rewriting.renaming import living
from hookbridge.migrate.rewriting.tree_names import dotted, imported_as

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


def lines_for(found: Imported, context: Context) -> list[str] | None:
    """The lines that replace one name of an import; None leaves it as it is."""
    full = context.names.meant(found.full)
    become = context.fate(full)
    if become is None:
        return None
    is_contrib = full.startswith("tf.contrib")
    if context.is_guarded(found.node) and (is_contrib or become.code == "LOST_NAME"):
        return None
    if isinstance(found.node, cst.Import) and imported_as(found.alias) is None:
        # `import tensorflow.contrib.slim` binds `tensorflow`; uses are renamed.
        root = found.bound
        return [f"import {root}"] if root == "tensorflow" else None
    is_carried = become.living.startswith("hookbridge.contrib")
    if become.living and not is_carried:
        if become.living == full:
            return None
        return _lines(found.bound, become.living, context)
    if _all_uses_are_renamed(found, context):
        return []
    return _lines(found.bound, become.living, context) if is_carried else None


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


def _all_uses_are_renamed(found: Imported, context: Context) -> bool:
    """Whether nothing needs the imported name once the rules have renamed its uses."""
    uses = [
        chain
        for chain in context.chains
        if (dotted(chain) or "").partition(".")[0] == found.bound
    ]
    for use in uses:
        new = living(use, context) if isinstance(use, cst.Attribute) else None
        if new is None or new.code not in context.codes:
            return False
    return bool(uses)
