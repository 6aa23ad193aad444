"""TPUs without a name: `TPUClusterResolver("")` was this process in TensorFlow 1."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.tf1_names.syntax import keyword, last_name

_RESOLVER = ".cluster_resolver.TPUClusterResolver"
_LOCAL = '"local"'


def unnamed_devices(module: Module, call: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    """Yield the expressions of a call that are an empty name of a TPU, with new texts.

    A flag is one if its default is an empty string.

    Args:
      module: the module that has the call.
      call: any call; only one of `TPUClusterResolver` has any.
    """
    if not (module.names.canonical(call.func) or "").endswith(_RESOLVER):
        return
    for argument in (*call.args[:1], *keyword(call, "tpu")):
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
        if (
            isinstance(call, ast.Call)
            and call.args
            and last_name(call.func) == "DEFINE_string"
        ):
            arguments = (*call.args[:2], *keyword(call, "default"))
            name, *default = [
                getattr(argument, "value", None) for argument in arguments
            ]
            if name == node.attr and default == [""]:
                return True
    return False
