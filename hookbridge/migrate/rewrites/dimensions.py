"""Dimensions of static shapes, which are plain numbers today.

    -size = x.get_shape()[1].value
    +size = tf.compat.v1.dimension_value(x.get_shape()[1])

`dimension_value` takes both, the dimension objects of TF1 and plain numbers. What a
loop or a comprehension takes from a shape is a dimension, too.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "dimensions"


def apply(old: cst.Attribute, new: cst.Attribute, context: Context) -> Any:
    """Changes `.value` of an item of a shape."""
    if new.attr.value != "value" or not _is_dimension(old.value, context):
        return new
    above = context.parent(old)
    if isinstance(above, cst.AssignTarget | cst.Attribute):
        return new
    function = context.imports.expression("tf.compat.v1.dimension_value")
    after = cst.Call(cst.parse_expression(function), [cst.Arg(new.value)])
    context.edit(NAME, old, after)
    return after.with_changes(lpar=new.lpar, rpar=new.rpar)


def _is_dimension(node: cst.BaseExpression, context: Context) -> bool:
    if isinstance(node, cst.Subscript):
        return _is_shape(node.value) and _is_number(node)
    if not isinstance(node, cst.Name):
        return False
    above = context.parent(node)
    while above is not None:
        loops: list[cst.For | cst.CompFor] = (
            [above] if isinstance(above, cst.For) else []
        )
        if isinstance(above, cst.ListComp | cst.GeneratorExp | cst.SetComp):
            loops = [above.for_in]
        for loop in loops:
            if isinstance(loop.target, cst.Name) and loop.target.value == node.value:
                return _is_part_of_shape(loop.iter)
        above = context.parent(above)
    return False


def _is_part_of_shape(node: cst.BaseExpression) -> bool:
    """Whether it is a shape or a slice of one."""
    if isinstance(node, cst.Subscript) and not _is_number(node):
        return _is_shape(node.value)
    return _is_shape(node)


def _is_shape(node: cst.BaseExpression) -> bool:
    """Whether it is `x.shape` or `x.get_shape()`."""
    if isinstance(node, cst.Call):
        function = node.func
        return isinstance(function, cst.Attribute) and (
            function.attr.value == "get_shape" and not node.args
        )
    return isinstance(node, cst.Attribute) and node.attr.value == "shape"


def _is_number(node: cst.Subscript) -> bool:
    return len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index)


RULE = RewriteRule(
    name=NAME,
    summary="`x.shape[i].value` becomes `tf.compat.v1.dimension_value(x.shape[i])`.",
    nodes=(cst.Attribute,),
    apply=apply,
    words=(".value",),
)
