"""Names of `tf.contrib` that live on elsewhere, in tf_slim above all.

    -tf.contrib.layers.batch_norm(x)
    +tf_slim.layers.batch_norm(x)

The living places are in `hookbridge/migrate/new_names.py`; a name that is in none of
them stays and gets a comment, and so does a call of a strategy with arguments, which
have other names today. tf_slim is a package of its own (`pip install tf_slim`).
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.renaming import renaming
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "contrib-names"
CODES = (
    *("CONTRIB_SLIM", "CONTRIB_LAYERS", "CONTRIB_GLOBAL_STEP", "CONTRIB_FRAMEWORK"),
    *("CONTRIB_METRICS", "CONTRIB_TOWERS", "CONTRIB_ESTIMATOR", "CONTRIB_LOOKUP"),
    *("CONTRIB_RNN", "CONTRIB_DATA", "CONTRIB_DISTRIBUTE"),
)

_rename = renaming(NAME, CODES)


def apply(old: cst.Attribute, new: cst.Attribute, context: Context) -> Any:
    """Renames, but for calls whose arguments would not fit."""
    above = context.parent(old)
    if isinstance(above, cst.Call) and above.func is old and above.args:
        name = context.names.of(old) or ""
        if name.startswith(("tf.contrib.distribute", "tf.contrib.cluster_resolver")):
            return new
    return _rename(old, new, context)


RULE = RewriteRule(
    name=NAME,
    summary="Names of `tf.contrib` that live on elsewhere, in tf_slim above all.",
    nodes=(cst.Attribute,),
    apply=apply,
    codes=CODES,
    words=("contrib",),
)
