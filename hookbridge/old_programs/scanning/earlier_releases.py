"""What TensorFlow 1.15 refuses already: releases before it took it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hookbridge.old_programs.reading.one_file.modules import Module
from hookbridge.old_programs.scanning.findings import Finding, finding_at
from hookbridge.tf1_names.syntax import last_name

_PARSED = "_parse_flags"
_FLAGS = "__flags"
_PARSE_WAY = "`FLAGS(sys.argv)`"
_VALUES_WAY = "`FLAGS.flag_values_dict()`"
_LISTS_WAY = "`isinstance(..., (list, tuple))`"


def of_earlier_releases(module: Module) -> Iterator[Finding]:
    """Yield flags read as before TensorFlow 1.5, and tensors asked for a length."""
    for node in module.unguarded:
        if name := _of_flags(module, node):
            way = _PARSE_WAY if name.endswith(_PARSED) else _VALUES_WAY
            yield finding_at(module, node, "BEFORE_1_15", name, way)
        elif _asks_an_output_for_its_length(node):
            name = 'hasattr(..., "__len__")'
            yield finding_at(module, node, "BEFORE_1_15", name, _LISTS_WAY)


def _of_flags(module: Module, node: ast.AST) -> str:
    """Return the name of an attribute that flags had, or gave values by; or none.

    Since 1.5 `__flags` has objects: a program that reads their `value` knows.
    """
    if isinstance(node, ast.Attribute) and node.attr in (_PARSED, _FLAGS):
        knows_objects = node.attr == _FLAGS and "value" in module.attributes
        is_of_flags = _is_flags(module, node.value) and not knows_objects
        return f"FLAGS.{node.attr}" if is_of_flags else ""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        is_dict = node.value.attr == "__dict__" and key == _FLAGS
        if is_dict and _is_flags(module, node.value.value):
            return f'FLAGS.__dict__["{_FLAGS}"]'
    return ""


def _is_flags(module: Module, node: ast.expr) -> bool:
    """Return whether an expression is `tf.flags.FLAGS`, or a parameter for it."""
    meant = module.names.canonical(node) or ""
    return meant.endswith(".flags.FLAGS") or last_name(node) == "FLAGS"


def _asks_an_output_for_its_length(node: ast.AST) -> bool:
    """Return whether it is `hasattr(model.output, "__len__") and len(model.output)`.

    A tensor has `__len__` since 1.13, which raises.
    """
    if not (isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And)):
        return False
    has_length, *conditions = map(ast.unparse, node.values)
    owner = has_length.removeprefix("hasattr(").removesuffix(", '__len__')")
    is_output = (
        owner.endswith(".output") and has_length == f"hasattr({owner}, '__len__')"
    )
    return is_output and any(f"len({owner})" in text for text in conditions)
