"""The environment variable that makes Keras 2 the Keras of TensorFlow.

    +import os
    +os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
     import tensorflow as tf

`tf.compat.v1.layers`, the cells of `tf.compat.v1.nn.rnn_cell` and `tf.compat.v1.keras`
are made by Keras 2 only; from TF 2.16 on that is the package tf_keras. The models and
layers of an Estimator or of a program of TF1 are Keras 2, too. The lines are written
into the main file of a program. `hookbridge run` decides the same.
"""

from __future__ import annotations

import ast

from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "keras2-switch"
VARIABLE = "TF_USE_LEGACY_KERAS"


def apply(node: ast.Module, context: Context) -> None:
    """Asks `Imports` for the two lines above all other imports."""
    if any(f.code == "KERAS2" for f in context.findings):
        switch = f'os.environ.setdefault("{VARIABLE}", "1")'
        context.imports.first += ["import os", switch]
        note = "needs tf_keras; has to run before anything imports Keras"
        context.note(NAME, node, "", switch, note)


RULE = RewriteRule(
    name=NAME,
    summary="Programs that need Keras 2 say so before TensorFlow loads.",
    nodes=(ast.Module,),
    apply=apply,
    codes=("KERAS2",),
)
