"""Names of private modules become the public ones.

    -model_fn_lib.ModeKeys.TRAIN
    +hb.estimator.ModeKeys.TRAIN

What has no public name stays.
"""

from __future__ import annotations

import libcst as cst

from hookbridge.migrate.rewriting.renaming import renaming
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "private-names"
CODES = ("ESTIMATOR_PRIVATE", "KERAS_PRIVATE")

RULE = RewriteRule(
    name=NAME,
    summary="Names of private modules become the public ones.",
    nodes=(cst.Attribute,),
    apply=renaming(NAME, CODES),
    codes=CODES,
    words=("tensorflow",),
)
