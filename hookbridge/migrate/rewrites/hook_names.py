"""Hooks of `tf.estimator` become the same classes of `tf.compat.v1.train`.

    -class MyHook(tf.estimator.SessionRunHook):
    +class MyHook(tf.compat.v1.train.SessionRunHook):

`tf_upgrade_v2` of TensorFlow 2.15 writes the old form.
"""

from __future__ import annotations

import libcst as cst

from hookbridge.migrate.rewriting.renaming import renaming
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "hook-names"
CODES = ("HOOK_NAME",)

RULE = RewriteRule(
    name=NAME,
    summary="Hooks of `tf.estimator` become the same classes of `tf.compat.v1.train`.",
    nodes=(cst.Attribute,),
    apply=renaming(NAME, CODES),
    codes=CODES,
    words=("Hook", "SessionRun", "Listener", "Timer", "MonitoredSession"),
)
