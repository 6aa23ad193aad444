"""Names of `tf.contrib` that live on elsewhere, in tf_slim above all.

    -tf.contrib.layers.batch_norm(x)
    +tf_slim.layers.batch_norm(x)

The living places are in `hookbridge/migrate/new_names.py`; a name that is in none of
them stays and gets a comment. A call of a strategy with arguments, which have other
names today, is left to `carried-contrib`. tf_slim is a package of its own
(`pip install tf_slim`).
"""

from __future__ import annotations

import libcst as cst

from hookbridge.migrate.rewriting.renaming import renaming
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "contrib-names"
CODES = (
    *("CONTRIB_SLIM", "CONTRIB_LAYERS", "CONTRIB_GLOBAL_STEP", "CONTRIB_FRAMEWORK"),
    *("CONTRIB_METRICS", "CONTRIB_TOWERS", "CONTRIB_ESTIMATOR", "CONTRIB_LOOKUP"),
    *("CONTRIB_RNN", "CONTRIB_DATA", "CONTRIB_DISTRIBUTE"),
)


RULE = RewriteRule(
    name=NAME,
    summary="Names of `tf.contrib` that live on elsewhere, in tf_slim above all.",
    nodes=(cst.Attribute,),
    apply=renaming(NAME, CODES),
    codes=CODES,
    words=("contrib",),
)
