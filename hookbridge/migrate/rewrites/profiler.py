"""The model analyzer of `tf.contrib`.

    -tf.contrib.tfprof.model_analyzer.print_model_analysis(graph, tfprof_options=o)
    +tf.compat.v1.profiler.profile(graph, options=o)

The two sets of options that it had as constants are made by a builder today.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "profiler"
_PLACE = "tf.contrib.tfprof.model_analyzer"
_BUILDER = "tf.compat.v1.profiler.ProfileOptionBuilder"
_OPTIONS = {
    "TRAINABLE_VARS_PARAMS_STAT_OPTIONS": "trainable_variables_parameter",
    "FLOAT_OPS_OPTIONS": "float_operation",
}
_WORDS = {"tfprof_options": "options", "tfprof_cmd": "cmd"}
_KEPT = frozenset({"", "graph", "run_meta", "op_log", *_WORDS})


def apply(
    old: cst.Call | cst.Attribute, new: cst.Call | cst.Attribute, context: Context
) -> Any:
    """Changes a call of the analyzer, or one of its constants."""
    if isinstance(old, cst.Call) and isinstance(new, cst.Call):
        return _call(old, new, context)
    place, _, last = (context.names.of(old) or "").rpartition(".")
    if place != _PLACE or last not in _OPTIONS:
        return new
    builder = context.imports.expression(_BUILDER)
    text = f"{builder}.{_OPTIONS[last]}()"
    context.edit(NAME, old, text)
    return cst.parse_expression(text)


def _call(old: cst.Call, new: cst.Call, context: Context) -> cst.Call:
    if context.names.of(old.func) != f"{_PLACE}.print_model_analysis":
        return new
    words = ["" if a.keyword is None else a.keyword.value for a in new.args]
    if not set(words) <= _KEPT or words.count("") > 1:
        return new
    arguments = [
        argument.with_changes(keyword=cst.Name(_WORDS[word]))
        if word in _WORDS
        else argument
        for word, argument in zip(words, new.args, strict=True)
    ]
    text = context.imports.expression("tf.compat.v1.profiler.profile")
    after = new.with_changes(func=cst.parse_expression(text), args=arguments)
    context.edit(NAME, old, after)
    return after


RULE = RewriteRule(
    name=NAME,
    summary="The model analyzer of `tf.contrib` becomes `tf.compat.v1.profiler`.",
    nodes=(cst.Call, cst.Attribute),
    apply=apply,
    codes=("CONTRIB_PROFILER",),
    words=("tfprof",),
)
