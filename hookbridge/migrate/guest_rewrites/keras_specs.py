"""The arguments of `train_and_evaluate`, as those of `fit` and `evaluate`."""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from hookbridge.migrate.guest_rewrites.places import given_arguments, word
from hookbridge.migrate.rewriting.context import Context

_PLACES = ("tf.estimator", "tf.compat.v1.estimator", "hookbridge.estimator")
_BOTH = tuple(f"{p}.train_and_evaluate" for p in (*_PLACES, "hookbridge.loops"))
_ORDER = ("estimator", "train_spec", "eval_spec")
_TRAIN = ("input_fn", "max_steps", "hooks", "saving_listeners")
_EVALUATE = (
    *("input_fn", "steps", "name", "hooks", "exporters"),
    *("start_delay_secs", "throttle_secs"),
)
# They say when a long training is evaluated on its way. `fit` does not evaluate then.
_WAITS = {"start_delay_secs", "throttle_secs"}
_DEFAULT_STEPS = "100"


class Specs(NamedTuple):
    """The arguments of one `train_and_evaluate`, by name, as code.

    Attributes:
      train: `input_fn`, `max_steps` and maybe `hooks`.
      evaluate: `input_fn` and maybe `steps`.
      names: the names that the two specs have in the file, if any.
    """

    train: dict[str, str]
    evaluate: dict[str, str]
    names: frozenset[str]


def is_both(call: cst.CSTNode, context: Context) -> bool:
    """Whether it is a call of `train_and_evaluate`."""
    return isinstance(call, cst.Call) and context.names.of(call.func) in _BOTH


def specs(call: cst.Call, context: Context) -> Specs | None:
    """The arguments, if `fit` and one `evaluate` can take them all.

    Args:
      call: a call of `train_and_evaluate`, in the old tree.
      context: the file's context.
    """
    found: dict[str, cst.BaseExpression] = {}
    for number, argument in enumerate(call.args):
        if argument.star or number >= len(_ORDER):
            return None
        found[word(argument) or _ORDER[number]] = argument.value
    names = set()
    made = []
    for which in _ORDER[1:]:
        value = found.get(which)
        if isinstance(value, cst.Name):
            if not _is_used_once(value.value, context):
                return None
            names.add(value.value)
            value = context.value_of(value.value)
        if not isinstance(value, cst.Call):
            return None
        made.append(value)
    train, evaluate = (arguments(one, context) for one in made)
    if train is None or evaluate is None:
        return None
    if (
        not {"input_fn", "max_steps"}
        <= set(train)
        <= {"input_fn", "max_steps", "hooks"}
    ):
        return None
    if not {"input_fn"} <= set(evaluate) <= {"input_fn", "steps"}:
        return None
    return Specs(train, evaluate, frozenset(names))


def arguments(call: cst.Call, context: Context) -> dict[str, str] | None:
    """The code of a spec's arguments; None if it is no spec, or not certain."""
    kind = (context.names.of(call.func) or "").rpartition(".")
    if kind[0] not in _PLACES:
        return None
    if kind[2] == "TrainSpec":
        return given_arguments(call.args, _TRAIN, context)
    if kind[2] != "EvalSpec":
        return None
    given = given_arguments(call.args, _EVALUATE, context)
    if given is None:
        return None
    words = {word(a) or _EVALUATE[n] for n, a in enumerate(call.args)}
    if "steps" not in words:
        given["steps"] = _DEFAULT_STEPS
    return {name: code for name, code in given.items() if name not in _WAITS}


def _is_used_once(name: str, context: Context) -> bool:
    return len(context.uses(name)) == 1
