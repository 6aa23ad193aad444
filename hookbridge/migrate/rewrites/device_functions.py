"""Functions given to `tf.device`.

    -with tf.device(tf.compat.v1.train.replica_device_setter(1)):
    +with tf.compat.v1.device(tf.compat.v1.train.replica_device_setter(1)):

Only the `device` of v1 takes a function; `tf_upgrade_v2` leaves that of v2.
"""

from __future__ import annotations

import libcst as cst

from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "device-functions"


def apply(old: cst.Call, new: cst.Call, context: Context) -> cst.Call:
    """Changes the function that is called."""
    if context.found(old, "DEVICE_FUNCTION") is None:
        return new
    if context.names.of(old.func) != "tf.device":
        return new
    text = context.imports.expression("tf.compat.v1.device")
    context.edit(NAME, old.func, text)
    return new.with_changes(func=cst.parse_expression(text))


RULE = RewriteRule(
    name=NAME,
    summary="`tf.device` with a function becomes `tf.compat.v1.device`.",
    nodes=(cst.Call,),
    apply=apply,
    codes=("DEVICE_FUNCTION",),
    words=("device",),
)
