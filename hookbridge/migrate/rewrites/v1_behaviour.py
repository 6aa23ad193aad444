"""The switch to the behaviour of TF1, in programs that need it.

     import tensorflow.compat.v1 as tf
    +tf.disable_v2_behavior()

A program does, if one of its files means TensorFlow 1, or has sessions, queues or
placeholders. The line is written into its main file, before the program's own modules
are imported; libraries stay as they are. `hookbridge run` decides the same. Losses may
depend on the line: a hook that fetches the global step gets its value after the step
from a variable of TF1, and before it from one of TF2.
"""

from __future__ import annotations

import ast

from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "v1-behaviour"


def apply(node: ast.Module, context: Context) -> None:
    """Asks `Imports` for the line, which goes after the imports of the module."""
    if any(f.code == "V1_BEHAVIOUR" for f in context.findings):
        line = context.imports.expression("tf.compat.v1.disable_v2_behavior") + "()"
        context.imports.switch = line
        context.note(NAME, node, "", line)


RULE = RewriteRule(
    name=NAME,
    summary="The main file of a program of TensorFlow 1 switches v2 behaviour off.",
    nodes=(ast.Module,),
    apply=apply,
    codes=("V1_BEHAVIOUR",),
)
