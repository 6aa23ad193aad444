"""`HParams` of `tf.contrib` that is used as plain attributes.

    -params = tf.contrib.training.HParams(rate=0.1)
    +params = types.SimpleNamespace(rate=0.1)

A file that calls a method of HParams anywhere (`parse`, `values`, ...) keeps it, with a
comment: a namespace has none of them.
"""

from __future__ import annotations

import re

import libcst as cst

from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "hparams"
_OLD = "tf.contrib.training.HParams"
_METHODS = re.compile(
    r"\.(parse|parse_json|values|add_hparam|set_hparam|del_hparam|get|keys|to_json"
    r"|override_from_dict|set_from_map|from_proto|to_proto)\("
    r"|params\s*\[| in h?params"
)


def prepare(context: Context) -> None:
    """Chooses the calls, if the file calls no method of HParams."""
    if _METHODS.search(context.text):
        return
    for chain in context.chains:
        call = context.parent(chain)
        if context.names.of(chain) != _OLD or not isinstance(call, cst.Call):
            continue
        positional = [a for a in call.args if a.keyword is None and a.star != "**"]
        if call.func is chain and not positional:
            context.taken.add(chain)


def apply(old: cst.Call, new: cst.Call, context: Context) -> cst.Call:
    """Changes the class that is called."""
    if context.names.of(old.func) != _OLD or old.func not in context.taken:
        return new
    text = context.imports.expression("types.SimpleNamespace")
    context.edit(NAME, old.func, text, "has no methods of HParams")
    return new.with_changes(func=cst.parse_expression(text))


RULE = RewriteRule(
    name=NAME,
    summary="`HParams` that is read as attributes becomes `types.SimpleNamespace`.",
    nodes=(cst.Call,),
    apply=apply,
    codes=("CONTRIB_HPARAMS",),
    words=("HParams",),
    prepare=prepare,
)
