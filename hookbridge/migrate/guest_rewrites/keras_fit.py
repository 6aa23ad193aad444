"""Estimators of a Keras model that is at hand train in `fit`.

    -estimator = tf.keras.estimator.model_to_estimator(model)
    -estimator.train(input_fn, steps=100, hooks=[MyHook()])
    +model.fit(input_fn(), steps_per_epoch=100, callbacks=hb.as_callbacks([MyHook()]))

Only where nobody would miss what the Estimator writes and tells: it has neither
`model_dir` nor `config`, each use of it is a `train` with `steps` or an `evaluate`
whose result is not used, and the input functions return a `tf.data.Dataset`. Any other
Estimator goes to `hb.estimator`. The optimizer's state goes on from one `fit` to the
next, as it did from checkpoint to checkpoint.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from hookbridge.migrate.guest_rewrites.places import given_arguments, word
from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule
from hookbridge.migrate.rewriting.tree_names import dotted

NAME = "keras-fit"
_MAKERS = (
    "tf.keras.estimator.model_to_estimator",
    "tf.compat.v1.keras.estimator.model_to_estimator",
    "hookbridge.estimator.model_to_estimator",
)
_NO_DATASETS = (
    "get_next",
    "one_shot_iterator",
    "initializable_iterator",
    "numpy_input",
)
_TRAIN = ("input_fn", "hooks", "steps", "max_steps", "saving_listeners")
_EVALUATE = ("input_fn", "steps", "hooks", "checkpoint_path", "name")


def prepare(context: Context) -> None:
    """Chooses the Estimators, all of whose uses can be changed."""
    for name, values in context.values.items():
        value = values[0]
        if len(values) != 1 or not isinstance(value, cst.Call):
            continue
        model = _model_of(value, context)
        if model is None or f"{model}.compile(" not in context.text:
            continue
        uses = [
            chain
            for chain in context.chains
            if (dotted(chain) or "").split(".")[0] == name
            and not isinstance(context.parent(chain), cst.AssignTarget)
        ]
        if uses and all(_call(use, context) is not None for use in uses):
            context.fits[name] = model


def _model_of(call: cst.Call, context: Context) -> str | None:
    """The name of the Keras model, if it is all that the Estimator is made of."""
    name = context.names.of(call.func) or ""
    if name not in _MAKERS:
        return None
    if len(call.args) != 1 or word(call.args[0]) not in ("", "keras_model"):
        return None
    value = call.args[0].value
    return value.value if isinstance(value, cst.Name) else None


def _call(use: cst.CSTNode, context: Context) -> dict[str, str] | None:
    """The arguments of a call that `fit` or `evaluate` can make, or None."""
    call = context.parent(use)
    if not isinstance(call, cst.Call) or call.func is not use:
        return None
    method = (dotted(use) or "").partition(".")[2]
    order = {"train": _TRAIN, "evaluate": _EVALUATE}.get(method)
    given = None if order is None else given_arguments(call.args, order, context)
    if given is None or not _is_statement(call, context):
        return None
    allowed = {"input_fn", "steps", "hooks"} if method == "train" else _BARE
    if not {"input_fn", "steps"} <= set(given) <= allowed:
        return None
    return given if _gives_dataset(given["input_fn"], context) else None


_BARE = {"input_fn", "steps"}


def _is_statement(call: cst.Call, context: Context) -> bool:
    return isinstance(context.parent(call), cst.Expr)


def _gives_dataset(function: str, context: Context) -> bool:
    """Whether a function of this file returns a dataset and takes nothing."""
    for node in context.module.body:
        if isinstance(node, cst.FunctionDef) and node.name.value == function:
            code = context.code(node.body)
            plain = not node.params.params and not node.params.kwonly_params
            return plain and "data" in code and not any(w in code for w in _NO_DATASETS)
    return False


def apply(
    old: cst.SimpleStatementLine, new: cst.SimpleStatementLine, context: Context
) -> Any:
    """Changes the statement of one call, or takes the Estimator's away."""
    if len(old.body) != 1 or not context.fits:
        return new
    small = old.body[0]
    if isinstance(small, cst.Assign):
        target = small.targets[0].target
        if isinstance(target, cst.Name) and target.value in context.fits:
            context.edit(NAME, old, "", "its checkpoints and summaries are not written")
            return cst.RemoveFromParent()
    if not isinstance(small, cst.Expr) or not isinstance(small.value, cst.Call):
        return new
    name, _, method = (dotted(small.value.func) or "").partition(".")
    changed = new.body[0]
    if name not in context.fits or not isinstance(changed, cst.Expr):
        return new
    order = _TRAIN if method == "train" else _EVALUATE
    call = cst.ensure_type(changed.value, cst.Call)
    given = given_arguments(call.args, order, context)
    if given is None:
        return new
    model = context.fits[name]
    if method == "evaluate":
        text = f"{model}.evaluate({given['input_fn']}(), steps={given['steps']})"
    else:
        text = f"{model}.fit({given['input_fn']}(), steps_per_epoch={given['steps']}"
        if "hooks" in given:
            function = context.imports.expression("hookbridge.as_callbacks")
            text += f", callbacks={function}({given['hooks']})"
        text += ")"
    context.edit(NAME, old, text)
    return new.with_changes(body=[cst.Expr(cst.parse_expression(text))])


RULE = RewriteRule(
    name=NAME,
    summary="Estimators of a Keras model that is at hand train in `fit`.",
    nodes=(cst.SimpleStatementLine,),
    apply=apply,
    words=("model_to_estimator",),
    prepare=prepare,
)
