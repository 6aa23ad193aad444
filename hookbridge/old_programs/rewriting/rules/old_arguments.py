"""Arguments, methods and functions that have another name today."""

from __future__ import annotations

import ast

from hookbridge.old_programs.names.renamed_arguments import (
    METHODS,
    is_second,
    name_today,
)
from hookbridge.old_programs.rewriting.engine.context import Context
from hookbridge.old_programs.rewriting.engine.rule import RewriteRule
from hookbridge.old_programs.scanning import tpu_names

NAME = "old-arguments"


def apply(node: ast.Call, context: Context) -> None:
    """Changes a call that the scan has found."""
    is_device = context.name(node.func) == "tf.device"
    if is_device and context.is_found(node, "DEVICE_FUNCTION"):
        device = context.imports.expression("tf.compat.v1.device", node.lineno)
        context.replace(NAME, node.func, device)
    for argument, today in tpu_names.unnamed(context.module, node):
        context.replace(NAME, argument, today)
    if context.is_found(node, "OLD_ARGUMENT"):
        if isinstance(node.func, ast.Attribute):
            _rename_method(node.func, context)
        _rename_arguments(node, context)


def _rename_method(function: ast.Attribute, context: Context) -> None:
    """Gives a method its name of today."""
    method = function.attr
    if method in METHODS:
        _, end = context.span(function)
        context.change(NAME, function, (end - len(method), end), METHODS[method])


def _rename_arguments(call: ast.Call, context: Context) -> None:
    """Gives arguments their names of today; one without a name becomes `prefetch`."""
    function = context.name(call.func) or ""
    _, last = context.span(call.func)
    for argument in sorted((*call.args, *call.keywords), key=context.span):
        before, (first, last) = last, context.span(argument)
        if not isinstance(argument, ast.keyword):
            continue
        today = name_today(call, argument, function)
        if is_second(call, argument, function):
            end, _ = context.span(argument.value)
            context.change(NAME, argument, (first, end), "")
        elif today:
            end = first + len(argument.arg or "")
            context.change(NAME, argument, (first, end), today)
        elif today == "":
            _make_prefetch(call, argument.value, (before, first, last), context)


def _make_prefetch(
    call: ast.Call, value: ast.expr, places: tuple[int, int, int], context: Context
) -> None:
    """Takes an argument away, with its comma, and puts `prefetch` behind the call."""
    before, first, last = places
    comma = context.text.rfind(",", before, first)
    has_comment = "#" in context.text[before:first]
    if comma < 0 or has_comment:
        return
    if context.change(NAME, call, (comma, last), ""):
        context.wrap(NAME, call, "", f".prefetch({context.code(value)})")


RULE = RewriteRule(
    name=NAME,
    summary="Arguments, methods and functions with another name today.",
    nodes=(ast.Call,),
    apply=apply,
    codes=("OLD_ARGUMENT", "DEVICE_FUNCTION"),
)
