"""Names of `tf.contrib` that hookbridge itself carries, for nothing else lives on.

    -tf.contrib.learn.Experiment(estimator, train_fn, eval_fn)
    +hb.contrib.learn.Experiment(estimator, train_fn, eval_fn)
    -tf_slim.batch_norm(x)
    +hb.contrib.slim.batch_norm(x)
    -input_data.read_data_sets("mnist")
    +hb.contrib.learn.datasets.mnist.read_data_sets("mnist")

They act as on TensorFlow 1.15 ([which there are](running-tf1.md#what-comes-back)). The
files of MNIST have to be there: nothing is downloaded. With `--skip carried-contrib`,
comments stand above these names instead.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from hookbridge.migrate.new_names import CARRIED
from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.renaming import renaming
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "carried-contrib"

_rename = renaming(NAME, (CARRIED,))


def apply(old: cst.Attribute, new: cst.Attribute, context: Context) -> Any:
    """Renames a name, unless a rule for calls replaces it."""
    return new if old in context.taken else _rename(old, new, context)


RULE = RewriteRule(
    name=NAME,
    summary="Names of `tf.contrib` that only hookbridge carries become `hb.contrib`.",
    nodes=(cst.Attribute,),
    apply=apply,
    codes=(CARRIED,),
    words=("contrib", "tf_slim", "tutorials"),
)
