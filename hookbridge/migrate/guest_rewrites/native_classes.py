"""Hook classes of pure Python become callbacks.

    -class StopAfter(tf.compat.v1.train.SessionRunHook):
    +class StopAfter(tf.keras.callbacks.Callback):
    -    def after_run(self, run_context, run_values):
    +    def on_train_batch_end(self, batch, logs=None):
             self.steps += 1
             if self.steps == 10:
    -            run_context.request_stop()
    +            self.model.stop_training = True

A class is, if it makes no ops, fetches and feeds nothing, and uses neither session nor
values; if all its uses are in this file, in lists that trainings take; and if no run of
a session in this file only fetches, for a callback is called for training steps alone.
Any other class stays a hook; one of pure Python gets a comment with the reason, such as
another of the given files that names it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import libcst as cst

from hookbridge.migrate import guest_sites
from hookbridge.migrate.guest_rewrites.hook_methods import as_callback, is_simple
from hookbridge.migrate.guest_rewrites.places import bridge, is_training
from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule
from hookbridge.migrate.rewriting.tree_names import dotted

NAME = "native-classes"
CODE = "NATIVE_CLASS"
_Test: TypeAlias = Callable[[cst.CSTNode, Context], bool]
_FETCHES = "a session of this file also runs without training, which no callback sees"
_BASE = "tf.keras.callbacks.Callback"


class NativeClasses:
    """Which hook classes of a file become callbacks.

    Attributes:
      chosen: their names.
    """

    def __init__(self, context: Context) -> None:
        self.chosen: set[str] = set()
        if CODE not in context.codes:
            return  # the rule was not chosen
        fetches = next(guest_sites.fetch_runs(context.source), None) is not None
        for node in context.module.body:
            if not isinstance(node, cst.ClassDef) or not is_simple(node, context):
                continue
            name = node.name.value
            reason = _FETCHES if fetches else _why_not(node, context)
            if not reason:
                self.chosen.add(name)
            else:
                context.left[CODE, name] = reason


def prepare(context: Context) -> None:
    """Chooses the classes first: the rules for lists of guests need to know them."""
    context.state(NativeClasses)


def _why_not(node: cst.ClassDef, context: Context) -> str:
    """Why a class of pure Python stays a hook; empty if it becomes a callback."""
    name = node.name.value
    if name in context.options.shared:
        return f"another file uses `{name}`; change both by hand"
    same = [n for n in context.module.body if isinstance(n, cst.ClassDef)]
    if sum(one.name.value == name for one in same) > 1:
        return "this file has several classes of this name"
    uses = [c for c in context.chains if (dotted(c) or "").split(".")[0] == name]
    uses = [use for use in uses if not _is_inside(use, node, context)]
    if not uses:
        return "nothing in this file uses it"
    for use in uses:
        if not _goes_to_training(use, context):
            lines = context.code(context.parent(use) or use).split("\n")
            code = next(line for line in lines if not line.startswith("#"))
            return f"`{code}` is no item of a list that a training takes"
    return ""


def _is_inside(node: cst.CSTNode, outer: cst.ClassDef, context: Context) -> bool:
    above: cst.CSTNode | None = node
    while above is not None and above is not outer:
        above = context.parent(above)
    return above is outer


def _goes_to_training(node: cst.CSTNode, context: Context) -> bool:
    """Whether a use makes an item of a list that a training takes."""
    call = context.parent(node)
    if not isinstance(call, cst.Call) or call.func is not node:
        return False
    return _is_item(call, context)


def _is_item(node: cst.CSTNode, context: Context) -> bool:
    above = context.parent(node)
    if isinstance(above, cst.Assign) and len(above.targets) == 1:
        target = above.targets[0].target
        return isinstance(target, cst.Name) and _all_uses(target, context, _is_item)
    if not isinstance(above, cst.Element):
        return False
    held = context.parent(above)
    return held is not None and _is_guest_list(held, context)


def _is_guest_list(node: cst.CSTNode, context: Context) -> bool:
    above = context.parent(node)
    if isinstance(above, cst.BinaryOperation):
        return _is_guest_list(above, context)
    if isinstance(above, cst.Assign) and len(above.targets) == 1:
        target = above.targets[0].target
        return isinstance(target, cst.Name) and _all_uses(
            target, context, _is_guest_list
        )
    if not isinstance(above, cst.Arg):
        return False
    call = context.parent(above)
    if not isinstance(call, cst.Call):
        return False
    if bridge(call, context):
        return _is_guest_list(call, context)
    return is_training(call, above)


def _all_uses(target: cst.Name, context: Context, goes: _Test) -> bool:
    """Whether a name is given one value, and `goes` is true for all its uses."""
    if context.value_of(target.value) is None:
        return False
    uses = context.uses(target.value)
    return bool(uses) and all(goes(use, context) for use in uses)


def apply(old: cst.ClassDef, new: cst.ClassDef, context: Context) -> cst.ClassDef:
    """Changes a class that `prepare` has chosen."""
    if old.name.value not in context.state(NativeClasses).chosen:
        return new
    base = context.imports.expression(_BASE)
    after = as_callback(new, base)
    note = "is called for training steps alone"
    context.edit(NAME, old.bases[0].value, base, note)
    return after


RULE = RewriteRule(
    name=NAME,
    summary="Hook classes of pure Python become callbacks.",
    nodes=(cst.ClassDef,),
    apply=apply,
    codes=(CODE,),
    words=("SessionRunHook",),
    option="native",
    prepare=prepare,
)
