"""The switches of a program, in its main file, as `hookbridge run` decides them."""

from __future__ import annotations

import ast

from hookbridge.old_programs.rewriting.engine.context import Context
from hookbridge.old_programs.rewriting.engine.rule import RewriteRule

NAME = "switches"
# Code of a finding -> the function that is called after the import of TensorFlow.
_SWITCHES = {
    "V1_BEHAVIOUR": "tf.compat.v1.disable_v2_behavior",
    "KERAS_SESSION": "hookbridge.legacy.share_keras_session",
}


def apply(node: ast.Module, context: Context) -> None:
    """Ask `NeededImports` for the lines; old ones of a notebook become comments."""
    codes = {finding.code for finding in context.findings}
    if "KERAS2" in codes:
        switch = 'os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")'
        context.imports.first += ["import os", switch]
        context.note(NAME, node, "", switch)
    if "LIBRARY_ESTIMATOR" in codes:
        call = context.imports.call_first("hookbridge", "estimator.install")
        context.note(NAME, node, "", call)
    for code, function in _SWITCHES.items():
        if code in codes:
            line = f"{context.imports.expression(function)}()"
            context.imports.switches.append(line)
            context.note(NAME, node, "", line)
    _comment_pins(node, context)


def _comment_pins(node: ast.Module, context: Context) -> None:
    """Make comments of the lines of a notebook that ask for TensorFlow 1."""
    notebook = context.module.notebook
    if notebook is None or not notebook.old_pins:
        return
    pins = {line for line, _ in notebook.old_pins}
    for inner in ast.walk(node):
        if isinstance(inner, ast.Expr) and inner.lineno in pins:
            is_top = context.parents[inner] is node
            context.replace(
                NAME, inner, f"{'' if is_top else 'pass  '}# {context.code(inner)}"
            )


RULE = RewriteRule(
    name=NAME,
    summary="Main files choose Keras 2 and the behaviour of TensorFlow 1 if needed.",
    nodes=(ast.Module,),
    apply=apply,
    codes=("KERAS2", "LIBRARY_ESTIMATOR", *_SWITCHES, "OLD_PIN"),
)
