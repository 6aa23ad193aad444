"""Arguments, methods and functions that have another name today."""

from __future__ import annotations

import ast

from hookbridge.old_programs.names.renamed_arguments import ARGUMENTS, METHODS
from hookbridge.old_programs.rewriting.engine.context import Context
from hookbridge.old_programs.rewriting.engine.rule import RewriteRule

NAME = "old-arguments"


def apply(node: ast.Call, context: Context) -> None:
    """Changes a call that the scan has found."""
    is_device = context.name(node.func) == "tf.device"
    if is_device and context.is_found(node, "DEVICE_FUNCTION"):
        device = context.imports.expression("tf.compat.v1.device")
        context.replace(NAME, node.func, device)
    if not isinstance(node.func, ast.Attribute):
        return
    if not context.is_found(node, "OLD_ARGUMENT"):
        return
    method = node.func.attr
    if method in METHODS:
        _, end = context.span(node.func)
        context.change(NAME, node.func, (end - len(method), end), METHODS[method])
    _, last = context.span(node.func)
    for argument in sorted((*node.args, *node.keywords), key=context.span):
        before, (first, last) = last, context.span(argument)
        if not isinstance(argument, ast.keyword):
            continue
        today = ARGUMENTS.get((method, argument.arg or ""))
        if today:
            end = first + len(argument.arg or "")
            context.change(NAME, argument, (first, end), today)
        elif today == "":
            comma = context.text.rfind(",", before, first)
            has_comment = "#" in context.text[before:first]
            span = comma, last
            if comma >= 0 and not has_comment and context.change(NAME, node, span, ""):
                value = context.code(argument.value)
                context.wrap(NAME, node, "", f".prefetch({value})")


RULE = RewriteRule(
    name=NAME,
    summary="Arguments, methods and functions with another name today.",
    nodes=(ast.Call,),
    apply=apply,
    codes=("OLD_ARGUMENT", "DEVICE_FUNCTION"),
)
