"""The switches of a program, in its main file, as `hookbridge run` decides them.

    +import os
    +os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
     import tensorflow.compat.v1 as tf
    +tf.disable_v2_behavior()

`tf.compat.v1.layers`, the cells of `tf.compat.v1.nn.rnn_cell` and `tf.compat.v1.keras`
are made by Keras 2 only; from TF 2.16 on that is the package tf_keras. The models and
layers of an Estimator or of a program of TF1 are Keras 2, too.

A program needs the behaviour of TF1 if one of its files means TensorFlow 1, or has
sessions, queues or placeholders. The line stands before the program's own modules are
imported; libraries stay as they are. Losses may depend on it: a hook that fetches the
global step gets its value after the step from a variable of TF1, and before it from one
of TF2.
"""

from __future__ import annotations

import ast

from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "switches"


def apply(node: ast.Module, context: Context) -> None:
    """Asks `Imports` for the lines."""
    codes = {finding.code for finding in context.findings}
    if "KERAS2" in codes:
        switch = 'os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")'
        context.imports.first += ["import os", switch]
        note = "needs tf_keras; has to run before anything imports Keras"
        context.note(NAME, node, "", switch, note)
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
