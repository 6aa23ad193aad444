"""The arguments that take guests."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from hookbridge.migrate.guest_sites import HOOK_ARGUMENTS
from hookbridge.migrate.rewriting.context import Context

FITS = ("fit", "fit_generator", "evaluate", "predict")
# Calls whose hooks take part in training only.
TRAININGS = (
    *("train", "TrainSpec", "MonitoredTrainingSession", "SingularMonitoredSession"),
    *("MonitoredSession", "train_and_evaluate"),
)
_OF_TRAINING = ("training_hooks", "training_chief_hooks", "chief_only_hooks")


def callee(node: cst.Call) -> str:
    """The last part of the name that is called."""
    if isinstance(node.func, cst.Attribute):
        return node.func.attr.value
    return node.func.value if isinstance(node.func, cst.Name) else ""


def word(argument: cst.Arg) -> str:
    """The keyword of an argument, or an empty text."""
    return "" if argument.keyword is None else argument.keyword.value


def given_arguments(
    arguments: Sequence[cst.Arg], order: tuple[str, ...], context: Context
) -> dict[str, str] | None:
    """The code of the arguments by name, without those that are `None`.

    Args:
      arguments: the arguments of a call.
      order: the names of arguments that may be given by position.
      context: the file's context.

    Returns:
      `{name: code}`; None if the name of an argument is not certain.
    """
    given = {}
    for number, argument in enumerate(arguments):
        if argument.star or (not word(argument) and number >= len(order)):
            return None
        value = context.code(argument.value)
        if value != "None":
            given[word(argument) or order[number]] = value
    return given


def takes_callbacks(call: cst.Call, argument: cst.Arg) -> bool:
    """Whether the argument is `callbacks=` of a Keras loop."""
    return word(argument) == "callbacks" and callee(call) in FITS


def takes_hooks(call: cst.Call, argument: cst.Arg) -> bool:
    """Whether the argument is a list of hooks."""
    return word(argument) in HOOK_ARGUMENTS and word(argument) != "saving_listeners"


def is_training(call: cst.Call, argument: cst.Arg) -> bool:
    """Whether the guests in the argument take part in training only."""
    if word(argument) == "callbacks":
        return callee(call) == "fit"
    if word(argument) == "hooks":
        return callee(call) in TRAININGS
    return word(argument) in _OF_TRAINING


def bridge(node: cst.BaseExpression, context: Context) -> str:
    """ "as_hooks" or "as_callbacks" for a call of one, else an empty text."""
    if not isinstance(node, cst.Call):
        return ""
    raw = context.names.raw(node.func) or ""
    root, _, last = raw.rpartition(".")
    is_ours = root == "hookbridge" and last in ("as_hooks", "as_callbacks")
    return last if is_ours else ""


def wrapped(
    value: cst.BaseExpression, function: str, context: Context
) -> cst.BaseExpression:
    """`hb.as_hooks(value)` or `hb.as_callbacks(value)`."""
    name = context.imports.expression(f"hookbridge.{function}")
    return cst.Call(cst.parse_expression(name), [cst.Arg(value)])
