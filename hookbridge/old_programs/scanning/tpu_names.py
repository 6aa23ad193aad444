"""TPUs without a name: `TPUClusterResolver("")` was this process in TensorFlow 1."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hookbridge.old_programs.reading.modules import Module

_RESOLVER = ".cluster_resolver.TPUClusterResolver"
_LOCAL = '"local"'


def unnamed(module: Module, call: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    """Yield the expressions of a call that are an empty name, with new texts.

    A flag is one if its default is an empty text.
    """
    if not (module.names.canonical(call.func) or "").endswith(_RESOLVER):
        return
    named = [keyword.value for keyword in call.keywords if keyword.arg == "tpu"]
    for argument in (*call.args[:1], *named):
        yield from _empty(module, argument)


def _empty(module: Module, node: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    """Yield the parts of an expression that are an empty name, with new texts."""
    if isinstance(node, ast.Constant):
        if node.value == "":
            yield node, _LOCAL
    elif isinstance(node, ast.IfExp):
        yield from _empty(module, node.body)
        yield from _empty(module, node.orelse)
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        yield from _empty(module, node.values[-1])
    elif isinstance(node, ast.Attribute) and _is_empty_flag(module, node):
        yield node, f"{ast.unparse(node)} or {_LOCAL}"


def _is_empty_flag(module: Module, node: ast.Attribute) -> bool:
    """Return whether it is `FLAGS.tpu`, a flag that the file defines as empty."""
    if ast.unparse(node.value).rpartition(".")[2] != "FLAGS":
        return False
    for call in module.nodes:
        if isinstance(call, ast.Call) and call.args and _defines(call.func):
            named = [k.value for k in call.keywords if k.arg == "default"]
            name, *default = [getattr(a, "value", None) for a in call.args[:2]]
            default += [getattr(a, "value", None) for a in named]
            if name == node.attr and default == [""]:
                return True
    return False


def _defines(function: ast.expr) -> bool:
    """Return whether a function is `DEFINE_string`, of whatever module."""
    return "DEFINE_string" in (
        getattr(function, "attr", ""),
        getattr(function, "id", ""),
    )
