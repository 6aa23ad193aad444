"""The switches of a program, in its main file, as `hookbridge run` decides them."""

from __future__ import annotations

import ast

from hookbridge.old_programs.rewriting.engine.context import Context
from hookbridge.old_programs.rewriting.engine.rule import RewriteRule

NAME = "switches"


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
    if "V1_BEHAVIOUR" in codes:
        line = context.imports.expression("tf.compat.v1.disable_v2_behavior") + "()"
        context.imports.switches.append(line)
        context.note(NAME, node, "", line)
    if "KERAS_SESSION" in codes:
        line = context.imports.expression("hookbridge.legacy.share_keras_session")
        context.imports.switches.append(f"{line}()")
        context.note(NAME, node, "", f"{line}()")
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
    codes=("KERAS2", "LIBRARY_ESTIMATOR", "V1_BEHAVIOUR", "KERAS_SESSION", "OLD_PIN"),
)
