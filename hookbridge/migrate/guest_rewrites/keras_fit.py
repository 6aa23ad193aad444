"""Estimators of a Keras model that is at hand train in `fit`.

    -estimator = tf.keras.estimator.model_to_estimator(model)
    -estimator.train(input_fn, steps=100, hooks=[MyHook()])
    +model.fit(input_fn(), steps_per_epoch=100, callbacks=hb.as_callbacks([MyHook()]))
    -train_spec = tf.estimator.TrainSpec(input_fn, max_steps=100)
    -eval_spec = tf.estimator.EvalSpec(eval_fn, steps=10)
    -tf.estimator.train_and_evaluate(other, train_spec, eval_spec)
    +other_model.fit(input_fn(), steps_per_epoch=100)
    +other_model.evaluate(eval_fn(), steps=10)

This is done only where nobody would miss what the Estimator writes and tells: it has
neither `model_dir` nor `config`, each use of it is a `train` with `steps` or an
`evaluate` whose result is not used, and the input functions return a `tf.data.Dataset`.
Any other Estimator goes to `hb.estimator`. The optimizer's state goes on from one `fit`
to the next, as it did from checkpoint to checkpoint.

`train_and_evaluate` is changed if it is the only training, has `max_steps`, and neither
exporters nor listeners nor hooks of the evaluation, and if the file does not name
`TF_CONFIG`: `fit` is one process. The evaluation at the end is the same; those on the
way, at checkpoints (every 10 minutes), are not made.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from hookbridge.migrate.guest_rewrites.keras_specs import Specs, is_both, specs
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


class Fits:
    """The Estimators of a file of which all uses can be changed.

    Attributes:
      models: `{name of an Estimator: name of its Keras model}`.
      specs: names of specs of `train_and_evaluate` that go with them.
    """

    def __init__(self, context: Context) -> None:
        self.models: dict[str, str] = {}
        self.specs: set[str] = set()
        for name, values in context.values.items():
            if len(values) == 1 and isinstance(values[0], cst.Call):
                self._look_at(name, values[0], context)

    def _look_at(self, name: str, value: cst.Call, context: Context) -> None:
        model = _model_of(value, context)
        if model is None or f"{model}.compile(" not in context.text:
            return
        uses = context.uses(name)
        both = [found for use in uses if (found := _both(use, context)) is not None]
        trainings = [use for use in uses if (dotted(use) or "").endswith(".train")]
        if both and (len(both) > 1 or trainings):
            return  # `max_steps` counts the steps of all trainings
        calls = [use for use in uses if _call(use, context) is not None]
        if uses and len(calls) + len(both) == len(uses):
            self.models[name] = model
            self.specs.update(name for found in both for name in found.names)


def _model_of(call: cst.Call, context: Context) -> str | None:
    """The name of the Keras model, if it is the only argument of the Estimator."""
    name = context.names.of(call.func) or ""
    if name not in _MAKERS:
        return None
    if len(call.args) != 1 or word(call.args[0]) not in ("", "keras_model"):
        return None
    value = call.args[0].value
    return value.value if isinstance(value, cst.Name) else None


def _call(use: cst.CSTNode, context: Context) -> dict[str, str] | None:
    """The arguments of a `train` or `evaluate`; None if Keras cannot do the same."""
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
_CLUSTER = "TF_CONFIG"


def _both(use: cst.CSTNode, context: Context) -> Specs | None:
    """The arguments of an Estimator's `train_and_evaluate`, if `fit` takes them."""
    argument = context.parent(use)
    call = None if argument is None else context.parent(argument)
    if not isinstance(call, cst.Call) or not is_both(call, context):
        return None
    if word(call.args[0]) not in ("", "estimator") or call.args[0].value is not use:
        return None
    found = specs(call, context)
    if found is None or not _is_statement(call, context) or _CLUSTER in context.text:
        return None
    inputs = (found.train["input_fn"], found.evaluate["input_fn"])
    return found if all(_gives_dataset(one, context) for one in inputs) else None


def _is_statement(call: cst.Call, context: Context) -> bool:
    return isinstance(context.parent(call), cst.Expr)


def _gives_dataset(function: str, context: Context) -> bool:
    """Whether a function of this file takes no arguments and returns a dataset."""
    for node in context.module.body:
        if isinstance(node, cst.FunctionDef) and node.name.value == function:
            code = context.code(node.body)
            plain = not node.params.params and not node.params.kwonly_params
            return plain and "data" in code and not any(w in code for w in _NO_DATASETS)
    return False


def apply(
    old: cst.SimpleStatementLine, new: cst.SimpleStatementLine, context: Context
) -> Any:
    """Changes the statement of one call, or removes that of the Estimator or a spec."""
    fits = context.state(Fits)
    if len(old.body) != 1 or not fits.models:
        return new
    small = old.body[0]
    if isinstance(small, cst.Assign):
        target = small.targets[0].target
        if isinstance(target, cst.Name) and target.value in fits.models:
            context.edit(NAME, old, "", "its checkpoints and summaries are not written")
            return cst.RemoveFromParent()
        if isinstance(target, cst.Name) and target.value in fits.specs:
            context.edit(NAME, old, "")
            return cst.RemoveFromParent()
    if not isinstance(small, cst.Expr) or not isinstance(small.value, cst.Call):
        return new
    if is_both(small.value, context):
        return _fit_and_evaluate(old, new, small.value, context)
    name, _, method = (dotted(small.value.func) or "").partition(".")
    changed = new.body[0]
    if name not in fits.models or not isinstance(changed, cst.Expr):
        return new
    order = _TRAIN if method == "train" else _EVALUATE
    call = cst.ensure_type(changed.value, cst.Call)
    given = given_arguments(call.args, order, context)
    if given is None:
        return new
    model = fits.models[name]
    write = _evaluate if method == "evaluate" else _fit
    text = write(model, given, given["steps"], context)
    context.edit(NAME, old, text)
    return new.with_changes(body=[cst.Expr(cst.parse_expression(text))])


def _fit(model: str, given: dict[str, str], steps: str, context: Context) -> str:
    text = f"{model}.fit({given['input_fn']}(), steps_per_epoch={steps}"
    if "hooks" in given:
        function = context.imports.expression("hookbridge.as_callbacks")
        text += f", callbacks={function}({given['hooks']})"
    return f"{text})"


def _evaluate(model: str, given: dict[str, str], steps: str, context: Context) -> str:
    tail = f", steps={steps}" if steps else ""
    return f"{model}.evaluate({given['input_fn']}(){tail})"


def _fit_and_evaluate(
    old: cst.SimpleStatementLine,
    new: cst.SimpleStatementLine,
    call: cst.Call,
    context: Context,
) -> Any:
    """The two statements that take the place of `train_and_evaluate`."""
    estimator = call.args[0].value if call.args else None
    models = context.state(Fits).models
    model = models.get(dotted(estimator) or "") if estimator else None
    found = None if model is None else specs(call, context)
    if model is None or found is None:
        return new
    lines = [
        _fit(model, found.train, found.train["max_steps"], context),
        _evaluate(model, found.evaluate, found.evaluate.get("steps", ""), context),
    ]
    note = "it is not evaluated on the way, and a job told by TF_CONFIG is one process"
    context.edit(NAME, old, "\n".join(lines), note)
    first, last = (
        cst.SimpleStatementLine([cst.Expr(cst.parse_expression(line))])
        for line in lines
    )
    first = first.with_changes(leading_lines=new.leading_lines)
    last = last.with_changes(trailing_whitespace=new.trailing_whitespace)
    return cst.FlattenSentinel([first, last])


RULE = RewriteRule(
    name=NAME,
    summary="Estimators of a Keras model that is at hand train in `fit`.",
    nodes=(cst.SimpleStatementLine,),
    apply=apply,
    words=("model_to_estimator",),
)
