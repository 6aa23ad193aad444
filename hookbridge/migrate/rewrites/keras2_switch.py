"""The environment variable that makes Keras 2 the Keras of TensorFlow.

    +import os
    +os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
     import tensorflow as tf

`tf.compat.v1.layers`, the cells of `tf.compat.v1.nn.rnn_cell` and `tf.compat.v1.keras`
are made by Keras 2 only; from TF 2.16 on that is the package tf_keras. The models and
layers of an Estimator or of a file that is TF1 throughout are Keras 2, too.
"""

from __future__ import annotations

import libcst as cst

from hookbridge.migrate.new_names import new_name
from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "keras2-switch"
VARIABLE = "TF_USE_LEGACY_KERAS"
_NEEDING = (
    *("tf.compat.v1.layers", "tf.compat.v1.nn.rnn_cell", "tf.compat.v1.keras"),
    *("tf.keras.optimizers.legacy", "tf.keras.layers.DenseFeatures"),
    *("tf.keras.experimental", "tf.keras.wrappers", "tf_slim"),
    *("hookbridge.contrib.slim", "hookbridge.contrib.layers"),
)


def apply(old: cst.Module, new: cst.Module, context: Context) -> cst.Module:
    """Asks `Imports` for the two lines above all other imports."""
    if context.target.has_estimator or VARIABLE in context.text:
        return new
    names = [n for c in context.chains if (n := context.names.of(c)) is not None]
    is_v1 = context.v1_root or "disable_v2_behavior" in context.text
    is_v1 = is_v1 or any(f.code == "ESTIMATOR" for f in context.findings)
    keras_in_graphs = is_v1 and any(f"{n}.".startswith("tf.keras.") for n in names)
    if not keras_in_graphs and not any(_needs_keras_2(n, context) for n in names):
        return new
    switch = f'os.environ.setdefault("{VARIABLE}", "1")'
    context.imports.first += ["import os", switch]
    note = "needs tf_keras; has to run before anything imports Keras"
    context.edit(NAME, old.body[0], switch, note)
    return new


def _needs_keras_2(name: str, context: Context) -> bool:
    new = new_name(name, context.target)
    living = name if new is None else new.dotted
    return any(living == n or living.startswith(f"{n}.") for n in _NEEDING)


RULE = RewriteRule(
    name=NAME,
    summary="Code that needs the layers of Keras 2 says so before TensorFlow loads.",
    nodes=(cst.Module,),
    apply=apply,
    codes=("LAYERS",),
    words=("layers", "rnn", "keras"),
)
