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

from typing import Any

import libcst as cst

from hookbridge.migrate.reading.names import canonical
from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.renaming import living
from hookbridge.migrate.rewriting.rule import RewriteRule
from hookbridge.migrate.rewriting.tree_names import dotted

NAME = "names"
CODES = (
    *("ESTIMATOR", "ESTIMATOR_PRIVATE", "HOOK_NAME", "CONTRIB", "TUTORIALS"),
    *("SLIM_BROKEN", "KERAS_PRIVATE", "V1_NAME", "LOST_NAME"),
)


def apply(old: cst.Attribute, new: cst.Attribute, context: Context) -> Any:
    """Changes an outermost chain of names."""
    outcome = living(old, context)
    if outcome is None or outcome.code not in CODES:
        return new
    text = _by_own_import(old, outcome.living, context)
    text = text or context.imports.expression(outcome.living)
    if text == dotted(old):
        return new
    after = cst.parse_expression(text)
    after = after.with_changes(lpar=new.lpar, rpar=new.rpar)
    context.edit(NAME, old, after)
    return after


def _by_own_import(node: cst.Attribute, living: str, context: Context) -> str:
    """The living name, by an import inside a function; empty for any other import.

    The program may run without TensorFlow until it calls such a function.
    """
    root: cst.BaseExpression = node
    while isinstance(root, cst.Attribute):
        root = root.value
    module = context.names.of(root)
    if module is None or not living.startswith(f"{module}."):
        return ""
    root_name = dotted(root) or ""
    if canonical(context.imports.bound.get(root_name, "")) == module:
        return ""
    return root_name + living[len(module) :]


RULE = RewriteRule(
    name=NAME,
    summary="Names that died become the living ones.",
    nodes=(cst.Attribute,),
    apply=apply,
    codes=CODES,
)
