"""Runs updates of shared variables once, even if several towers wait for them."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from hookbridge import compat, errors

VARIABLES = ("VarHandleOp", "VariableV2", "Variable")
UPDATES = ("Assign", "Scatter", "ResourceScatter")


def update_once(first: Sequence[Any], own: Sequence[Any], outputs: Any) -> None:
    """Makes a tower wait for the first tower's updates instead of its own.

    A model function may make its gradients wait for an update, such as a counter or the
    averages of a batch normalisation, without the collection `UPDATE_OPS`. The
    gradients of all towers are computed. So, without this function, each tower would
    update the shared variable.

    Updates inside a `tf.function`, `tf.cond` or `tf.while_loop` are not found. `first`
    and `own` are the operations of the first tower and of this one, in the order of
    their creation, and `outputs` the tensors of this one that the steps compute.
    """
    mine = set(own)
    updates = _updates(op for op in own if _variable(op) not in mine)
    if not updates:
        return
    instead = _counterparts(_updates(first), updates)
    todo = [
        getattr(tensor, "op", tensor)
        for tensor in tf.nest.flatten(outputs, expand_composites=True)
    ]
    visited: set[Any] = set()
    while todo:
        op = todo.pop()
        if op not in mine or op in visited:
            continue
        visited.add(op)
        if any(control in instead for control in op.control_inputs):
            _wait_for(op, [_once(control, instead) for control in op.control_inputs])
        for tensor in op.inputs:
            if tensor.op in instead:
                raise _refused(tensor.op)
        todo += [*op.control_inputs, *(tensor.op for tensor in op.inputs)]


def _variable(op: Any) -> Any:
    """The variable that the operation changes; None if it changes none."""
    if op.type.startswith(UPDATES) and op.inputs:
        variable = op.inputs[0].op
        if variable.type in VARIABLES:
            return variable
    return None


def _updates(ops: Any) -> dict[Any, list[Any]]:
    """The updates by type and variable, in the order of their creation."""
    groups = collections.defaultdict(list)
    for op in ops:
        variable = _variable(op)
        if variable is not None:
            groups[op.type, variable.name].append(op)
    return groups


def _counterparts(first: Any, own: Any) -> dict[Any, Any]:
    """The first tower's update for each update of a tower; None if it has none."""
    instead: dict[Any, Any] = {}
    for key, ops in own.items():
        # Matched from the end: the first tower may have one more, the initializer.
        firsts = [None] * len(ops) + first.get(key, [])
        instead.update(zip(ops, firsts[-len(ops) :], strict=True))
    return instead


def _once(control: Any, instead: dict[Any, Any]) -> Any:
    replacement = instead.get(control, control)
    if replacement is None:
        raise _refused(control)
    return replacement


def _wait_for(op: Any, control_inputs: list[Any]) -> None:
    compat.private("remove_control_inputs")(op)
    compat.private("add_control_inputs")(op, control_inputs)


def _refused(op: Any) -> Exception:
    return errors.InvalidArgumentError(
        f"The towers compute with the variable `{_variable(op).name}` after "
        f"`{op.name}` changed it; expected updates that run once for all towers. Put "
        "the update into `tf.compat.v1.GraphKeys.UPDATE_OPS` or into the train op, "
        "for example `tf.group(update, optimizer.minimize(...))`."
    )
