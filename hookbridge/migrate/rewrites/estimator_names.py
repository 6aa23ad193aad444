"""`tf.estimator.X` becomes `hb.estimator.X`.

    -tf.estimator.Estimator(model_fn)
    +hb.estimator.Estimator(model_fn)

`tf.compat.v1.estimator.X` becomes `hb.estimator.v1.X` where both had different things
of one name (the canned Estimators), else `hb.estimator.X`.
"""

from __future__ import annotations

import libcst as cst

from hookbridge.migrate.rewriting.renaming import renaming
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "estimator-names"
CODES = ("ESTIMATOR", "ESTIMATOR_INPUTS")

RULE = RewriteRule(
    name=NAME,
    summary="`tf.estimator.X` becomes `hb.estimator.X`.",
    nodes=(cst.Attribute,),
    apply=renaming(NAME, CODES),
    codes=CODES,
    words=("estimator",),
)
