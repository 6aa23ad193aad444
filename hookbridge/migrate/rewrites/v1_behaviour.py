"""The switch to the behaviour of TF1, in programs that need it.

     import tensorflow.compat.v1 as tf
    +tf.disable_v2_behavior()

It is written into files that run: with `__name__ == "__main__"`, or with the session,
queue or placeholder outside of functions. Other files stay as they are: the program
decides, not its libraries. Losses may depend on the line: a hook that fetches the
global step gets its value after the step from a variable of TF1, and before it from
one of TF2, so a learning rate that it feeds would change one step later.
"""

from __future__ import annotations

import libcst as cst

from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "v1-behaviour"


def apply(old: cst.Module, new: cst.Module, context: Context) -> cst.Module:
    """Asks `Imports` for the line, which goes after the imports of the module."""
    found = [f for f in context.findings if f.code == "V1_BEHAVIOUR"]
    if not found or not _is_program(old, context, found[0].line):
        return new
    line = context.imports.expression("tf.compat.v1.disable_v2_behavior") + "()"
    context.imports.last.append(line)
    context.edit(NAME, old.body[0], line)
    return new


def _is_program(module: cst.Module, context: Context, line: int) -> bool:
    if "__main__" in context.text or "app.run" in context.text:
        return True
    holding = [node for node in module.body if context.line(node) <= line]
    return bool(holding) and not isinstance(holding[-1], cst.FunctionDef | cst.ClassDef)


RULE = RewriteRule(
    name=NAME,
    summary="Programs with sessions, queues or bare placeholders switch v2 off.",
    nodes=(cst.Module,),
    apply=apply,
    codes=("V1_BEHAVIOUR",),
)
