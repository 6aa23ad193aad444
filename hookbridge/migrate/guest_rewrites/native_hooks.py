"""TensorFlow's own hooks in `fit` that Keras has a twin of.

    -callbacks=hb.as_callbacks([tf.compat.v1.train.NanTensorHook("loss:0")])
    +callbacks=hb.as_callbacks([tf.keras.callbacks.TerminateOnNaN()])

Twins differ; each edit names how:

| Hook | Callback | What differs |
|---|---|---|
| NanTensorHook | TerminateOnNaN | ends the training, raises no error |
| SummarySaverHook | TensorBoard | writes losses and metrics, no summary ops |
| StepCounterHook | TensorBoard | also writes losses and metrics, at each epoch |
| ProfilerHook | TensorBoard | profiles one step, for TensorBoard's profiler |
| CheckpointSaverHook | ModelCheckpoint | weights in one file; none at begin and end |

Other hooks have none (StopAtStepHook, LoggingTensorHook, FinalOpsHook, FeedFnHook,
GlobalStepWaiterHook): hookbridge carries them.
"""

from __future__ import annotations

import libcst as cst

from hookbridge.migrate.guest_rewrites.places import (
    bridge,
    given_arguments,
    takes_callbacks,
)
from hookbridge.migrate.rewriting.context import Context
from hookbridge.migrate.rewriting.rule import RewriteRule

NAME = "native-hooks"
# Hook -> (its arguments in order, callback, {new keyword: old} and fixed keywords,
# what differs). A hook that is given an old argument in neither stays a hook.
_TWINS: dict[str, tuple[tuple[str, ...], str, dict[str, str], str]] = {
    "NanTensorHook": (
        ("loss_tensor",),
        "TerminateOnNaN",
        {},
        "ends the training, raises no NanLossDuringTrainingError",
    ),
    "SummarySaverHook": (
        ("save_steps", "save_secs", "output_dir"),
        "TensorBoard",
        {"log_dir": "output_dir", "update_freq": "save_steps"},
        "writes losses and metrics, no summary ops of the model",
    ),
    "StepCounterHook": (
        ("every_n_steps", "every_n_secs", "output_dir"),
        "TensorBoard",
        {
            "log_dir": "output_dir",
            "update_freq": "every_n_steps",
            "write_steps_per_second": "True",
        },
        "also writes losses and metrics; steps per second at each epoch",
    ),
    "ProfilerHook": (
        ("save_steps", "save_secs", "output_dir"),
        "TensorBoard",
        {"log_dir": "output_dir", "profile_batch": "save_steps"},
        "profiles one step, for TensorBoard's profiler",
    ),
    "CheckpointSaverHook": (
        ("checkpoint_dir", "save_secs", "save_steps"),
        "ModelCheckpoint",
        {
            "filepath": "checkpoint_dir",
            "save_freq": "save_steps",
            "save_weights_only": "True",
        },
        "weights in one file model.weights.h5; none at the begin and the end",
    ),
}


def apply(old: cst.Call, new: cst.Call, context: Context) -> cst.Call:
    """Changes the items of `callbacks=` of one call."""
    arguments = list(new.args)
    for number, argument in enumerate(new.args):
        if not takes_callbacks(old, argument):
            continue
        before, value = old.args[number].value, argument.value
        if isinstance(value, cst.List) and isinstance(before, cst.List):
            value = _list(before, value, context)
        elif (
            isinstance(value, cst.Call)
            and isinstance(before, cst.Call)
            and bridge(before, context) == "as_callbacks"
            and isinstance(value.args[0].value, cst.List)
            and isinstance(before.args[0].value, cst.List)
        ):
            inner = _list(before.args[0].value, value.args[0].value, context)
            first = value.args[0].with_changes(value=inner)
            value = value.with_changes(args=[first, *value.args[1:]])
        arguments[number] = argument.with_changes(value=value)
    return new.with_changes(args=arguments)


def _list(old: cst.List, new: cst.List, context: Context) -> cst.List:
    elements = []
    for before, element in zip(old.elements, new.elements, strict=True):
        if isinstance(before.value, cst.Call) and isinstance(element.value, cst.Call):
            twin = _twin(before.value, element.value, context)
            if twin is not None:
                element = element.with_changes(value=twin)
        elements.append(element)
    return new.with_changes(elements=elements)


def _twin(call: cst.Call, new: cst.Call, context: Context) -> cst.BaseExpression | None:
    name = context.names.of(call.func) or ""
    place, _, last = name.rpartition(".")
    if last not in _TWINS or not place.startswith("tf."):
        return None
    order, callback, renamed, differs = _TWINS[last]
    given = given_arguments(new.args, order, context)
    if given is None:
        return None
    takes = set(renamed.values()) | {"loss_tensor"}
    needed = {old for old in renamed.values() if old != "True"}
    if set(given) - takes or needed - set(given):
        return None
    arguments = []
    for keyword, old in renamed.items():
        value = given.get(old, old)
        if keyword == "filepath":
            value = f'{value} + "/model.weights.h5"'
        arguments.append(f"{keyword}={value}")
    function = context.imports.expression(f"tf.keras.callbacks.{callback}")
    text = f"{function}({', '.join(arguments)})"
    context.edit(NAME, call, text, differs)
    return cst.parse_expression(text)


RULE = RewriteRule(
    name=NAME,
    summary="TensorFlow's hooks in `fit` become the callbacks that do the same.",
    nodes=(cst.Call,),
    apply=apply,
    words=("callbacks",),
    option="native",
)
