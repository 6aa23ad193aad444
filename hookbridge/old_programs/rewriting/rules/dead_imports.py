"""Imports of dead names; the names that they bind stay, so the code below does too."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Sequence

from hookbridge.old_programs.names.lost_in_libraries import lost_part
from hookbridge.old_programs.names.old_keras import CODES as KERAS_CODES
from hookbridge.old_programs.names.old_keras import KERAS
from hookbridge.old_programs.names.outcome import Resolution
from hookbridge.old_programs.reading.import_statements import Import, canonical, imports
from hookbridge.old_programs.rewriting.engine.context import Context
from hookbridge.old_programs.rewriting.engine.needed_imports import module_of
from hookbridge.old_programs.rewriting.engine.rule import RewriteRule

NAME = "dead-imports"
# What is below these is written by its whole name.
_CARRIED = ("hookbridge.contrib", "hookbridge.estimator.python")
# Below these no `from X import` works: Python's import system has no such modules.
_NO_MODULES = (
    "hookbridge.estimator.v1",
    "hookbridge.estimator.experimental",
    "hookbridge.estimator.export",
    *_CARRIED,
)


def lines_for(one: Import, context: Context) -> list[str] | None:
    """The lines that replace one name of an import; None leaves it as it is."""
    if one.bound == "*":
        return None
    written = canonical(one.full)
    if one.full in context.place.unused_lost:
        return []
    become = _resolution(written, context)
    if become is None or _may_fail(one, become, context):
        return None
    if written in context.place.unused and not become.living:
        return []
    if isinstance(one.node, ast.Import) and one.alias.asname is None:
        return _plain_lines(one, become, context)
    if become.living == written:
        return None
    is_carried = become.living.startswith(_CARRIED)
    if become.living and not is_carried:
        return _lines(one, become.living, context)
    if _all_uses_are_renamed(one.bound, context):
        return []
    return _lines(one, become.living, context) if is_carried else None


def _plain_lines(one: Import, become: Resolution, context: Context) -> list[str] | None:
    """What replaces `import a.b`, whose uses are renamed."""
    if one.bound == "tensorflow":  # `import tensorflow.contrib.slim` binds it
        return ["import tensorflow"]
    if one.bound == KERAS and become.code in KERAS_CODES:
        whole = context.resolve(KERAS) or become
        return _lines(one, whole.living, context)
    is_module = "." not in one.full and lost_part(one.full) == one.full
    # Python has lost a whole module.
    return [f"import {become.living}"] if is_module and become.living else None


def _may_fail(one: Import, become: Resolution, context: Context) -> bool:
    """Whether the program has another way when the import fails, which it keeps."""
    if id(one.node) not in context.module.guarded:
        return False
    is_contrib = context.meant(canonical(one.full)).startswith("tf.contrib")
    return is_contrib or become.code == "LOST_NAME"


def _resolution(written: str, context: Context) -> Resolution | None:
    """What becomes of an imported name, as the file means it or as it is written."""
    meant = context.meant(written)
    become = context.resolve(meant)
    if become is None and meant != written and not context.target.has(written):
        # `from tensorflow import app`, in a file that means TensorFlow 1.
        become = context.resolve(written)
    return become


def _lines(one: Import, name: str, context: Context) -> list[str]:
    """Lines that bind a name to a living one."""
    bound, line = one.bound, one.node.lineno
    parent, _, last = name.rpartition(".")
    if hasattr(builtins, name):
        return [] if bound == name else [f"{bound} = {name}"]
    if not parent:
        return [f"import {name}" if bound == name else f"import {name} as {bound}"]
    root, dot, rest = parent.partition(".")
    if parent.startswith(_NO_MODULES):
        ours = context.imports.here("hookbridge", line)
        return [f"{bound} = {ours}{dot}{rest}.{last}"]
    tail = "" if bound == last else f" as {bound}"
    return [f"from {module_of(root)}{dot}{rest} import {last}{tail}"]


def _all_uses_are_renamed(bound: str, context: Context) -> bool:
    """Whether nothing needs an imported name once the rules have renamed its uses."""
    is_used = False
    for node in context.module.nodes:
        if isinstance(node, ast.Name) and node.id == bound:
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
    for one in (one for node in context.module.nodes for one in imports(node)):
        lines, full = lines_for(one, context), canonical(one.full)
        if lines is None:
            if id(one.node) in context.module.guarded and full.startswith("tf.contrib"):
                context.kept.add(one.bound)
        elif not lines:
            bound.pop(one.bound, None)
        elif lines != [f"import {one.bound}"]:
            _keep(one, lines, context)


def _keep(one: Import, lines: list[str], context: Context) -> None:
    """Notes what a name means once its import is replaced by some lines."""
    bound = context.imports.bound
    meant = context.meant(canonical(one.full))
    new = context.resolve(meant)
    if isinstance(one.node, ast.Import) and one.alias.asname is None:
        module = lines[0].removeprefix("import ")
        bound.pop(one.bound, None)
        if one.bound == KERAS:
            bound[KERAS] = canonical(f"{module.split()[1]}.{KERAS}")
        else:
            bound[module] = module
        return
    context.kept.add(one.bound)
    if one.bound in bound:
        bound[one.bound] = meant if new is None else new.living


def apply(node: ast.Import | ast.ImportFrom, context: Context) -> None:
    """Replaces one import."""
    pairs = [(one, lines_for(one, context)) for one in imports(node)]
    if all(lines is None for _, lines in pairs):
        return
    lines = [line for _, held in pairs for line in held or ()]
    if isinstance(node, ast.ImportFrom) and (module := _one_module(pairs)):
        first, _ = context.span(node)
        written = re.match(r"from\s+(\S+)\s", context.code(node))
        if written is not None:
            span = first + written.start(1), first + written.end(1)
            context.change(NAME, node, span, module)
            return
    staying = [one.alias for one, held in pairs if held is None]
    if staying:
        rest: ast.stmt = ast.Import(staying)
        if isinstance(node, ast.ImportFrom):
            rest = ast.ImportFrom(node.module, staying, 0)
        lines.insert(0, ast.unparse(rest))
    context.replace_statement(NAME, node, list(dict.fromkeys(lines)))


def _one_module(pairs: Sequence[tuple[Import, list[str] | None]]) -> str:
    """The module of today that has all names of an import under their names, if one."""
    modules = set()
    for one, lines in pairs:
        before, _, names = (lines or [""])[0].partition(" import ")
        if len(lines or ()) != 1 or names != ast.unparse(one.alias):
            return ""
        modules.add(before.removeprefix("from "))
    return modules.pop() if len(modules) == 1 else ""


RULE = RewriteRule(
    name=NAME,
    summary="Imports of names that died import the living ones.",
    nodes=(ast.Import, ast.ImportFrom),
    apply=apply,
    prepare=prepare,
)
