"""Trainings with hooks show how a Keras callback joins them.

    +# hookbridge: a Keras callback joins as an item: hb.as_hooks([...,
    +# tf.keras.callbacks.CSVLogger("log.csv")], steps_per_epoch=100)
    -estimator.train(input_fn, hooks=[MyHook()])
    +estimator.train(input_fn, hooks=hb.as_hooks([MyHook()]))

`hb.as_hooks` leaves hooks as they are, so nothing changes until a callback is added.
"""

from __future__ import annotations

import libcst as cst

from hookbridge.migrate.guest_rewrites.keras_fit import Fits
from hookbridge.migrate.guest_rewrites.places import (
    bridge,
    is_training,
    takes_hooks,
    wrapped,
)
from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule
from hookbridge.migrate.rewriting.tree_names import dotted

NAME = "added-guests"


def apply(old: cst.Call, new: cst.Call, context: Context) -> cst.Call:
    """Wraps the hooks of one training, with a comment above it."""
    if (dotted(old.func) or "").partition(".")[0] in context.state(Fits).models:
        return new  # `fit` takes callbacks without a wrapper
    if len(old.args) != len(new.args):
        return new  # another rule has replaced the call
    arguments = list(new.args)
    for number, argument in enumerate(new.args):
        value = argument.value
        if not (takes_hooks(old, argument) and is_training(old, argument)):
            continue
        if isinstance(value, cst.Name) and value.value == "None":
            continue
        if not bridge(old.args[number].value, context):
            if isinstance(value, cst.Call) and value is not old.args[number].value:
                continue  # another rule has wrapped it
            value = wrapped(value, "as_hooks", context)
            context.edit(NAME, old.args[number].value, value)
            hb = context.code(value).partition("(")[0]
            context.comment(
                old,
                f"# hookbridge: a Keras callback joins as an item: {hb}([...,",
            )
            context.comment(
                old,
                '# tf.keras.callbacks.CSVLogger("log.csv")], steps_per_epoch=100)',
            )
        arguments[number] = argument.with_changes(value=value)
    return new.with_changes(args=arguments)


RULE = RewriteRule(
    name=NAME,
    summary="Trainings with hooks show how a Keras callback joins them.",
    nodes=(cst.Call,),
    apply=apply,
    words=("hooks",),
    option="add_guests",
)
