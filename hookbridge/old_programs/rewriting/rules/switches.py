"""The switches of a program, in its main file, as `hookbridge run` decides them."""

from __future__ import annotations

import ast

from hookbridge.old_programs.rewriting.engine.context import Context
from hookbridge.old_programs.rewriting.engine.rule import RewriteRule

NAME = "switches"


def apply(node: ast.Module, context: Context) -> None:
    """Asks `NeededImports` for the lines."""
    codes = {finding.code for finding in context.findings}
    if "KERAS2" in codes:
        switch = 'os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")'
        context.imports.first += ["import os", switch]
        context.note(NAME, node, "", switch)
    if "V1_BEHAVIOUR" in codes:
        line = context.imports.expression("tf.compat.v1.disable_v2_behavior") + "()"
        context.imports.switch = line
        context.note(NAME, node, "", line)


RULE = RewriteRule(
    name=NAME,
    summary="Main files choose Keras 2 and the behaviour of TensorFlow 1 if needed.",
    nodes=(ast.Module,),
    apply=apply,
    codes=("KERAS2", "V1_BEHAVIOUR"),
)
