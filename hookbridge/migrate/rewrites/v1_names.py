"""Names that only TF1 has at the top become those of `tf.compat.v1`.

    -tf.train.AdamOptimizer(0.1)
    +tf.compat.v1.train.AdamOptimizer(0.1)

In a file that is TF1 throughout, `v1-imports` changes the import instead.
"""

from __future__ import annotations

import libcst as cst

from hookbridge.migrate.rewriting.renaming import renaming
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "v1-names"
CODES = ("V1_NAME", "LAYERS")

RULE = RewriteRule(
    name=NAME,
    summary="Names that only TF1 has at the top become those of `tf.compat.v1`.",
    nodes=(cst.Attribute,),
    apply=renaming(NAME, CODES),
    codes=CODES,
    words=(),
)
