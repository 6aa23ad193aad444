"""Arguments and methods that have another name today.

-estimator.export_savedmodel("out", serving)
+estimator.export_saved_model("out", serving)
-data.map(parse, num_threads=4, output_buffer_size=8)
+data.map(parse, num_parallel_calls=4).prefetch(8)
-builder.add_meta_graph(tags, legacy_init_op=op)
+builder.add_meta_graph(tags, main_op=op)
"""

from __future__ import annotations

import libcst as cst

from hookbridge.migrate.behaviour_findings import ARGUMENTS, METHODS
from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "old-arguments"


def apply(old: cst.Call, new: cst.Call, context: Context) -> cst.Call:
    """Changes a call that the scan has found."""
    if context.found(old, "OLD_ARGUMENT") is None:
        return new
    if not isinstance(new.func, cst.Attribute):
        return new
    method = new.func.attr.value
    func = new.func
    if method in METHODS:
        func = func.with_changes(attr=cst.Name(METHODS[method]))
    buffer: cst.BaseExpression | None = None
    arguments = []
    for argument in new.args:
        word = "" if argument.keyword is None else argument.keyword.value
        today = ARGUMENTS.get((method, word))
        if today == "":
            buffer = argument.value
            continue
        if today is not None:
            argument = argument.with_changes(keyword=cst.Name(today))
        arguments.append(argument)
    if buffer is not None and arguments:
        arguments[-1] = arguments[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    after = new.with_changes(func=func, args=arguments)
    if buffer is not None:
        prefetch = cst.Attribute(after, cst.Name("prefetch"))
        after = cst.Call(prefetch, [cst.Arg(buffer)])
    if not after.deep_equals(new):
        context.edit(NAME, old, after)
    return after


RULE = RewriteRule(
    name=NAME,
    summary="Arguments and methods with another name today.",
    nodes=(cst.Call,),
    apply=apply,
    codes=("OLD_ARGUMENT",),
    words=("export_savedmodel", "legacy_init_op", "num_threads", "output_buffer_size"),
)
