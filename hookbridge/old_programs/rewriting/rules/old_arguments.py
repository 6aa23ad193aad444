"""Arguments, methods and functions that have another name now."""

from __future__ import annotations

import ast
import re

from hookbridge.old_programs.rewriting.engine.context import Context
from hookbridge.old_programs.rewriting.engine.rule import RewriteRule
from hookbridge.old_programs.scanning import tpu_names
from hookbridge.tf1_names.changes import BECOMES_PREFETCH, renamed_method
from hookbridge.tf1_names.old_values import old_values
from hookbridge.tf1_names.removed_in_libraries import (
    removed_methods,
    removed_names,
)
from hookbridge.tf1_names.renamed_arguments import (
    change_of,
    needs_no_name,
    surplus,
)

NAME = "old-arguments"


def apply(node: ast.Call, context: Context) -> None:
    """Change the function, the method and the arguments of a call."""
    is_device = context.name(node.func) == "tf.device"
    if is_device and context.is_found(node, "DEVICE_FUNCTION"):
        _replace_function(node, "tf.compat.v1.device", context)
    for argument, current in tpu_names.unnamed_devices(context.module, node):
        context.replace(NAME, argument, current)
    rows = node.args[0] if context.is_found(node, "UNEQUAL_ROWS") else None
    if isinstance(rows, ast.List | ast.Tuple):
        _, end = _with_parentheses(rows, _after_opening(node, context), context)
        context.change(NAME, rows, (end, end), ", dtype=object")
    elif rows is not None or context.is_found(node, "GPU_READER"):
        name = (context.name(node.func) or "").rpartition(".")[2]
        _replace_function(node, f"hookbridge.legacy.{name}", context)
    if isinstance(node.func, ast.Attribute):
        _rename_method(node.func, context)
    if context.is_found(node, "OLD_ARGUMENT"):
        _rename_arguments(node, context)
        _change_values(node, context)


def _replace_function(call: ast.Call, name: str, context: Context) -> None:
    """Call another function, with the same arguments."""
    function = context.imports.expression(name, call.lineno)
    context.replace(NAME, call.func, function)


def _rename_method(function: ast.Attribute, context: Context) -> None:
    """Give a method its current name."""
    method = function.attr
    current = renamed_method(method)
    if current:
        current = current if context.is_found(function, "OLD_ARGUMENT") else ""
    elif removed_methods(method) and context.name(function) is None:
        is_removed = context.is_found(function, "LOST_NAME")
        current = _current_method(method) if is_removed else ""
    if current:
        _, end = context.span(function)
        context.change(NAME, function, (end - len(method), end), current)


def _current_method(method: str) -> str:
    """Return the current name of a removed method; empty if it has none."""
    replacements = {
        removed_names()[name].replacement for name in removed_methods(method)
    }
    return next(iter(replacements)).rpartition(".")[2]


def _change_values(call: ast.Call, context: Context) -> None:
    """Write values that are now refused as they are taken."""
    for node, current in old_values(call, context.name(call.func) or ""):
        before, has_place, after = current.partition("{}")
        if has_place and _shares_parentheses(node, call, context):
            context.wrap(NAME, node, f"({before}", f"{after})")
        elif has_place:
            context.wrap(NAME, node, before, after)
        else:
            context.replace(NAME, node, _source_text(current, node, context))


def _shares_parentheses(node: ast.expr, call: ast.Call, context: Context) -> bool:
    """Return whether the parentheses of a call are those of its generator, too."""
    is_generator = isinstance(node, ast.GeneratorExp)
    return is_generator and context.span(node)[1] == context.span(call)[1]


def _source_text(current: str, node: ast.expr, context: Context) -> str:
    """Return source text; a dotted name as the file has to write it."""
    is_name = isinstance(node, ast.Attribute | ast.Name)
    return context.imports.expression(current, node.lineno) if is_name else current


def _rename_arguments(call: ast.Call, context: Context) -> None:
    """Give arguments their current names, and take out what has none."""
    function = context.name(call.func) or ""
    end_before = _after_opening(call, context)
    for argument in sorted((*call.args, *call.keywords), key=context.span):
        before, (first, end_before) = end_before, context.span(argument)
        if argument in surplus(call, function):
            _take_out(call, argument, before, context)
        if not isinstance(argument, ast.keyword):
            continue
        change = change_of(call, argument, function)
        if change is None:
            continue
        if needs_no_name(call, argument, change):
            after_name = first + len(change.old)
            end, _ = _with_parentheses(argument.value, after_name, context)
            context.change(NAME, argument, (first, end), "")
        elif change.new:
            end = first + len(change.old)
            context.change(NAME, argument, (first, end), change.new)
        else:
            is_out = _take_out(call, argument, before, context)
            if is_out and change.note == BECOMES_PREFETCH:
                size = context.code(argument.value)
                context.wrap(NAME, call, "", f".prefetch({size})")


def _after_opening(call: ast.Call, context: Context) -> int:
    """Return where in the text the arguments of a call begin."""
    return context.text.index("(", context.span(call.func)[1]) + 1


def _with_parentheses(node: ast.expr, before: int, context: Context) -> tuple[int, int]:
    """Return where a value begins and ends, with the parentheses around it alone.

    Args:
      node: the value.
      before: where in the text ends what stands before these parentheses.
      context: the file.
    """
    first, end = context.span(node)
    while (opened := context.text[before:first].rstrip()).endswith("("):
        closed = re.compile(r"\s*\)").match(context.text, end)
        if closed is None:
            break
        first, end = before + len(opened) - 1, closed.end()
    return first, end


def _take_out(
    call: ast.Call, argument: ast.keyword | ast.expr, before: int, context: Context
) -> bool:
    """Take an argument away, with its comma; return whether that was possible.

    Args:
      call: the call that has the argument.
      argument: what is taken away.
      before: where in the text ends what stands before it.
      context: the file.
    """
    first, end = context.span(argument)
    if isinstance(argument, ast.expr):
        first, end = _with_parentheses(argument, before, context)
    span = context.text.rfind(",", before, first), end
    if context.changes.comments((before, first)):
        # The comma before it stays, since comments stand between.
        comma = re.match(r"\s*,", context.text[end:])
        span = first, end + (comma.end() if comma else 0)
    elif span[0] < 0:
        return False
    return context.change(NAME, call, span, "")


RULE = RewriteRule(
    name=NAME,
    summary="Renamed arguments, methods and functions get their current names.",
    nodes=(ast.Call,),
    apply=apply,
    codes=(
        "OLD_ARGUMENT",
        "DEVICE_FUNCTION",
        "LOST_NAME",
        "UNEQUAL_ROWS",
        "GPU_READER",
    ),
)
