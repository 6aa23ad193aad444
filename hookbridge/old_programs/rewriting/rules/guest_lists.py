"""Lists of guests that are given to the other loop."""

from __future__ import annotations

import ast
import functools

from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.old_programs.rewriting.engine.context import Context
from hookbridge.old_programs.rewriting.engine.results import comment
from hookbridge.old_programs.rewriting.engine.rule import RewriteRule
from hookbridge.old_programs.scanning.findings import CODES
from hookbridge.old_programs.scanning.guests import (
    HOOK_ARGUMENTS,
    KERAS_LOOPS,
)
from hookbridge.tf1_names.syntax import last_name, times_bound

NAME = "guest-lists"
_EPOCHS = "STEPS_PER_EPOCH"
_GROWING = ("append", "extend", "insert")


def apply(node: ast.Call, context: Context) -> None:
    """Wrap the lists of one call."""
    for argument in node.keywords:
        value = argument.value
        kinds = {_kind(item, context) for item in _items(value, context) or [value]}
        if argument.arg == "callbacks" and last_name(node.func) in KERAS_LOOPS:
            function = "as_callbacks" if kinds & {"hook", "listener"} else ""
        elif argument.arg in HOOK_ARGUMENTS and argument.arg != "saving_listeners":
            function = "as_hooks" if "callback" in kinds else ""
        else:
            continue
        if function == "as_hooks":
            context.comment(node, comment(_EPOCHS, CODES[_EPOCHS].message))
        if function:
            name = context.imports.expression(f"hookbridge.{function}", node.lineno)
            context.wrap(NAME, value, f"{name}(", ")")


def _kind(node: ast.expr, context: Context) -> str | None:
    """Return "hook", "listener", "callback", or None where it is not certain."""
    if isinstance(node, ast.Name):
        value = _values(context.module).get(node.id)
        return None if value is None else _kind(value, context)
    if not isinstance(node, ast.Call):
        return None
    own_class = node.func.id if isinstance(node.func, ast.Name) else ""
    dotted = f"{context.module.dotted}.{own_class}" if own_class else ""
    return context.guests.kind(context.module.names.through_program(node.func), dotted)


def _items(node: ast.expr, context: Context) -> list[ast.expr]:
    """Return the items of the lists in an expression that the code shows."""
    if isinstance(node, ast.Name):
        value = _values(context.module).get(node.id)
        is_list = isinstance(value, ast.List | ast.Tuple | ast.BinOp)
        return _items(value, context) if value is not None and is_list else []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_items(node.left, context), *_items(node.right, context)]
    return node.elts if isinstance(node, ast.List | ast.Tuple) else []


@functools.lru_cache(maxsize=1)
def _values(module: Module) -> dict[str, ast.expr]:
    """Return the values of names that are given exactly one in the whole file."""
    values: dict[str, ast.expr] = {}
    times = times_bound(module.nodes)
    for node in module.nodes:
        if isinstance(node, ast.Call) and last_name(node.func) in _GROWING:
            # What the list holds is not certain any more.
            times[ast.unparse(node.func).rpartition(".")[0]] += 2
        elif isinstance(node, ast.Assign):
            used = {last_name(inner) for inner in ast.walk(node.value)}
            names = {t.id for t in node.targets if isinstance(t, ast.Name)}
            values.update(dict.fromkeys(names - used, node.value))
    return {name: value for name, value in values.items() if times[name] == 1}


RULE = RewriteRule(
    name=NAME,
    summary="Hooks given to `fit` and callbacks given to sessions work there.",
    nodes=(ast.Call,),
    apply=apply,
)
