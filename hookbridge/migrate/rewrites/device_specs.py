"""`merge_from` of a device specification, which cannot be changed any more.

-spec.merge_from(other)
+spec = spec.make_merged_spec(other)
"""

from __future__ import annotations

import libcst as cst

from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule
from hookbridge.migrate.rewriting.tree_names import dotted

NAME = "device-specs"


def apply(old: cst.Expr, new: cst.Expr, context: Context) -> cst.BaseSmallStatement:
    """Changes a statement that is such a call and nothing else."""
    call = new.value
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return new
    if call.func.attr.value != "merge_from" or len(call.args) != 1:
        return new
    name = dotted(call.func.value)
    if name is None or "DeviceSpec" not in context.text:
        return new
    merged = call.with_changes(
        func=call.func.with_changes(attr=cst.Name("make_merged_spec"))
    )
    target = cst.parse_expression(name)
    assert isinstance(target, cst.Name | cst.Attribute)
    after = cst.Assign([cst.AssignTarget(target)], merged)
    context.edit(NAME, old, after)
    return after.with_changes(semicolon=new.semicolon)


RULE = RewriteRule(
    name=NAME,
    summary="`spec.merge_from(x)` becomes `spec = spec.make_merged_spec(x)`.",
    nodes=(cst.Expr,),
    apply=apply,
    words=("merge_from",),
)
