"""Removed names become their replacements; `resolve` knows what becomes of a name."""

from __future__ import annotations

import ast

from hookbridge.old_programs.reading.names.import_statements import (
    canonical,
    loaded_module,
)
from hookbridge.old_programs.rewriting.engine.context import Context
from hookbridge.old_programs.rewriting.engine.needed_imports import PRIVATE
from hookbridge.old_programs.rewriting.engine.rule import RewriteRule
from hookbridge.tf1_names.installed_names import module_of
from hookbridge.tf1_names.outcome import V1
from hookbridge.tf1_names.removed_in_libraries import removed_methods
from hookbridge.tf1_names.syntax import root_of

NAME = "dead-names"
CODES = (
    "ESTIMATOR",
    "ESTIMATOR_PRIVATE",
    "HOOK_NAME",
    "CONTRIB",
    "TUTORIALS",
    "SLIM_BROKEN",
    "KERAS_PRIVATE",
    "KERAS2_NAME",
    "KERAS_MOVED",
    "PRIVATE_MOVED",
    "V1_NAME",
    "LOST_NAME",
    "LOST_ATTRIBUTE",
)


def apply(node: ast.Attribute | ast.Name | ast.Call, context: Context) -> None:
    """Change an outermost dotted name, or a bare one from a star of another file.

    So it does a call that imports a removed module: `import_module("a.b")`.
    """
    if isinstance(node, ast.Call) and (
        not loaded_module(node) or id(node) in context.module.guarded
    ):
        return
    if isinstance(node, ast.Name):
        from_star = context.module.names.given.get(node.id)
        if from_star is None or from_star.star:
            return
    outcome = context.replacement(node)
    if outcome is None:
        _ask_for_attribute(node, context)
        _import_private(node, context)
        return
    if outcome.code not in CODES:
        return
    text = _by_own_import(node, outcome.replacement, context)
    text = text or context.imports.expression(outcome.replacement, node.lineno)
    if text != ast.unparse(node):
        context.replace(NAME, node, text)


def _ask_for_attribute(
    node: ast.Attribute | ast.Name | ast.Call, context: Context
) -> None:
    """Read what a library removed from its class by `hb.legacy.attribute`.

    An f-string stays: its quotes may be those of the new text.
    """
    if not (isinstance(node, ast.Attribute) and removed_methods(node.attr)):
        return
    if not isinstance(node.ctx, ast.Load):
        return
    is_found = context.is_found(node, "LOST_ATTRIBUTE")
    if not is_found or context.is_in_fstring(node):
        return
    first, end = context.span(node)
    dot = context.text.rindex(".", first, end)
    function = context.imports.expression("hookbridge.legacy.attribute", node.lineno)
    if context.change(NAME, node, (dot, end), f', "{node.attr}")'):
        context.changes.add(first, first, f"{function}(")


def _import_private(
    node: ast.Attribute | ast.Name | ast.Call, context: Context
) -> None:
    """Import the private module that `tf.python.ops.array_ops.zeros` is in.

    TensorFlow itself no longer has `python` and `core`.
    """
    root, names = root_of(node), context.module.names
    if not (isinstance(node, ast.Attribute) and isinstance(root, ast.Name)):
        return
    if context.is_part(node) or id(node) in context.module.guarded:
        return
    name = names.canonical(node) or ""
    is_whole = names.canonical(root) in ("tf", V1)
    if not (is_whole and name.startswith(PRIVATE) and isinstance(node.ctx, ast.Load)):
        return
    outcome = context.resolve(name)
    is_there = outcome is None or outcome.code == "PRIVATE"
    if is_there and module_of(name).count(".") > 0:
        text = context.imports.expression(name, node.lineno)
        context.replace(NAME, node, text)


def _by_own_import(node: ast.expr, replacement: str, context: Context) -> str:
    """Return the replacement by an import inside a function; empty for others.

    The program may run without TensorFlow until it calls such a function.
    """
    root = root_of(node)
    module = context.name(root)
    if module is None or not replacement.startswith(f"{module}."):
        return ""
    name = context.code(root)
    if canonical(context.imports.bound.get(name, "")) == module:
        return ""
    return name + replacement[len(module) :]


RULE = RewriteRule(
    name=NAME,
    summary="Removed names are replaced by their current equivalents.",
    nodes=(ast.Attribute, ast.Name, ast.Call),
    apply=apply,
    codes=CODES,
)
