"""Lists of guests that are given to the other loop.

    -model.fit(x, y, callbacks=[tf.compat.v1.train.StopAtStepHook(3)])
    +model.fit(x, y, callbacks=hb.as_callbacks([tf.compat.v1.train.StopAtStepHook(3)]))
    -estimator.train(input_fn, hooks=[tf.keras.callbacks.History()])
    +estimator.train(input_fn, hooks=hb.as_hooks([tf.keras.callbacks.History()]))

What an item is has to be seen in the code: a class of TensorFlow or Keras, one of this
program, or a name that is given one of them and nothing else. Callbacks in a session
need `steps_per_epoch`, which nobody can see: a comment says so.
"""

from __future__ import annotations

import libcst as cst

from hookbridge.migrate.codes import CODES
from hookbridge.migrate.guest_rewrites.kinds import items, kind_of
from hookbridge.migrate.guest_rewrites.native_classes import NativeClasses
from hookbridge.migrate.guest_rewrites.places import (
    takes_callbacks,
    takes_hooks,
    wrapped,
)
from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule
from hookbridge.migrate.rewriting.todos import comment

NAME = "guest-lists"
_EPOCHS = "STEPS_PER_EPOCH"


def apply(old: cst.Call, new: cst.Call, context: Context) -> cst.Call:
    """Wraps the lists of one call."""
    if len(old.args) != len(new.args):
        return new  # another rule has replaced the call
    arguments = list(new.args)
    for number, (before, argument) in enumerate(zip(old.args, new.args, strict=True)):
        found = items(before.value, context)
        if found is None and kind_of(before.value, context) is not None:
            found = [before.value]
        kinds = {kind_of(item, context) for item in found or []}
        if takes_callbacks(old, argument) and kinds & {"hook", "listener"}:
            function = "as_callbacks"
        elif takes_hooks(old, argument) and "callback" in kinds:
            function = "as_hooks"
            if not _are_native(found or [], context):
                context.comment(old, comment(_EPOCHS, CODES[_EPOCHS].message))
        else:
            continue
        value = wrapped(argument.value, function, context)
        context.edit(NAME, before.value, value)
        arguments[number] = argument.with_changes(value=value)
    return new.with_changes(args=arguments)


def _are_native(found: list[cst.BaseExpression], context: Context) -> bool:
    """Whether all callbacks were hooks of this file: such callbacks need no epochs."""
    callbacks = [i for i in found if kind_of(i, context) == "callback"]
    return all(
        isinstance(item, cst.Call)
        and isinstance(item.func, cst.Name)
        and item.func.value in context.state(NativeClasses).chosen
        for item in callbacks
    )


RULE = RewriteRule(
    name=NAME,
    summary="Hooks given to `fit` and callbacks given to sessions are carried there.",
    nodes=(cst.Call,),
    apply=apply,
    words=("callbacks", "hooks"),
)
