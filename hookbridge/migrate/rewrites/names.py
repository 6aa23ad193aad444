"""Names that died become the living ones.

    -tf.estimator.Estimator(model_fn)
    +hb.estimator.Estimator(model_fn)
    -class MyHook(tf.estimator.SessionRunHook):
    +class MyHook(tf.compat.v1.train.SessionRunHook):
    -tf.train.AdamOptimizer(0.1)
    +tf.compat.v1.train.AdamOptimizer(0.1)
    -tf.contrib.layers.fully_connected(x, 10)
    +tf_slim.layers.fully_connected(x, 10)
    -tf.contrib.learn.Experiment(estimator, train_fn, eval_fn)
    +hb.contrib.learn.Experiment(estimator, train_fn, eval_fn)
    -model_fn_lib.ModeKeys.TRAIN
    +hb.estimator.ModeKeys.TRAIN
    -np.zeros(3, np.object)
    +np.zeros(3, object)

What becomes of a name is in `hookbridge/migrate/fates.py`, for `hookbridge run` too; a
name of `tf.contrib` becomes that of its successor, or the one in `hb.contrib`, which
acts as on TensorFlow 1.15 ([which there are](running-tf1.md#what-comes-back)). In a
file of TensorFlow 1 `v1-imports` changes the import of TensorFlow, and the names that
version 1 has stay. tf_slim is a package of its own (`pip install tf_slim`).
"""

from __future__ import annotations

import ast

from hookbridge.migrate.reading.names import canonical
from hookbridge.migrate.rewriting.context import Context, root_of
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "names"
CODES = (
    *("ESTIMATOR", "ESTIMATOR_PRIVATE", "HOOK_NAME", "CONTRIB", "TUTORIALS"),
    *("SLIM_BROKEN", "KERAS_PRIVATE", "V1_NAME", "LOST_NAME"),
)


def apply(node: ast.Attribute, context: Context) -> None:
    """Changes an outermost dotted name."""
    outcome = context.living(node)
    if outcome is None or outcome.code not in CODES:
        return
    text = _by_own_import(node, outcome.living, context)
    text = text or context.imports.expression(outcome.living)
    if text != ast.unparse(node):
        context.replace(NAME, node, text)


def _by_own_import(node: ast.Attribute, living: str, context: Context) -> str:
    """The living name, by an import inside a function; empty for any other import.

    The program may run without TensorFlow until it calls such a function.
    """
    root = root_of(node)
    module = context.name(root)
    if module is None or not living.startswith(f"{module}."):
        return ""
    name = ast.unparse(root)
    if canonical(context.imports.bound.get(name, "")) == module:
        return ""
    return name + living[len(module) :]


RULE = RewriteRule(
    name=NAME,
    summary="Names that died become the living ones.",
    nodes=(ast.Attribute,),
    apply=apply,
    codes=CODES,
)
