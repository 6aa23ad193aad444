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
from hookbridge.migrate.guest_sites import HOOK_ARGUMENTS, KERAS_LOOPS
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
        items = _items(before.value, context) or [before.value]
        kinds = {_kind(item, context) for item in items}
        word = "" if argument.keyword is None else argument.keyword.value
        if word == "callbacks" and _callee(old) in KERAS_LOOPS:
            function = "as_callbacks" if kinds & {"hook", "listener"} else ""
        elif word in HOOK_ARGUMENTS and word != "saving_listeners":
            function = "as_hooks" if "callback" in kinds else ""
        else:
            continue
        if function == "as_hooks":
            context.comment(old, comment(_EPOCHS, CODES[_EPOCHS].message))
        if function:
            name = context.imports.expression(f"hookbridge.{function}")
            value = cst.Call(cst.parse_expression(name), [cst.Arg(argument.value)])
            context.edit(NAME, before.value, value)
            arguments[number] = argument.with_changes(value=value)
    return new.with_changes(args=arguments)


def _callee(node: cst.Call) -> str:
    """The last part of the name that is called."""
    function = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
    return function.value if isinstance(function, cst.Name) else ""


def _kind(node: cst.BaseExpression, context: Context) -> str | None:
    """ "hook", "listener", "callback", or None where it is not certain."""
    if isinstance(node, cst.Name):
        value = context.value_of(node.value)
        return None if value is None else _kind(value, context)
    if not isinstance(node, cst.Call):
        return None
    own = node.func.value if isinstance(node.func, cst.Name) else ""
    dotted = f"{context.source.dotted}.{own}" if own else ""
    return context.guests.kind(context.names.raw(node.func), dotted)


def _items(node: cst.BaseExpression, context: Context) -> list[cst.BaseExpression]:
    """The items of the lists in an expression that the code shows."""
    if isinstance(node, cst.Name):
        value = context.value_of(node.value)
        is_list = isinstance(value, cst.List | cst.Tuple | cst.BinaryOperation)
        return _items(value, context) if value is not None and is_list else []
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        return [*_items(node.left, context), *_items(node.right, context)]
    if isinstance(node, cst.List | cst.Tuple):
        return [element.value for element in node.elements]
    return []


RULE = RewriteRule(
    name=NAME,
    summary="Hooks given to `fit` and callbacks given to sessions are carried there.",
    nodes=(cst.Call,),
    apply=apply,
    words=("callbacks", "hooks"),
)
