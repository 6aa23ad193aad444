"""The gradients of a session's step, found behind the ops that update variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from hookbridge.adapters.session_graph import graph_ops
from hookbridge.ground import collected
from hookbridge.ground.protocols import Operation, Tensor

# A gradient as one tensor, or one of rows as their values and their indices.
Parts = list[Any]
# Scopes of what computes gradients.
_GRADIENTS = re.compile(r"(^|/)(gradients|gradient_tape)(_\d+)?/")
# Ops by which optimizers without an op of their own change a variable.
_CHANGES = re.compile(r"(Resource)?Scatter(Add|Sub)$|Assign(Sub|Add)?(VariableOp)?$")
# Ops that make a whole gradient of one of rows, such as `tf.convert_to_tensor` does.
_MAKES_WHOLE = ("UnsortedSegmentSum", "ScatterNd")


def is_of_gradients(op: Operation) -> bool:
    """Return whether an op is in a scope of what computes gradients."""
    return _GRADIENTS.search(op.name) is not None


def applied_gradients(ops: Iterable[Any]) -> dict[str, Parts]:
    """Return the gradient that its update op gets, for each variable."""
    pairs = (_gradient_of_apply(op) for op in ops if graph_ops.is_apply(op))
    return {name: parts for name, parts in pairs if parts}


def computed_gradients(
    ops: Iterable[Any], got: Mapping[str, Parts], trainable: Iterable[Any]
) -> dict[str, Parts]:
    """Return each gradient before clipping, also where no update op gets it."""
    gradients = {
        name: (rows and _rows_before_adding(values.op))
        or [_gradient_behind(values, values), *rows]
        for name, (values, *rows) in got.items()
    }
    handles = {collected.handle_op(v): v.op.name for v in trainable}
    for op in ops:
        name = handles.get(graph_ops.source_op(op.inputs[0])) if op.inputs else None
        if name is not None and name not in gradients and _CHANGES.match(op.type):
            parts = _gradient_of_change(op)
            if parts:
                gradients[name] = parts
    return gradients


def _gradient_of_apply(op: Operation) -> tuple[str, Parts]:
    arguments = {
        argument.name: tensor
        for argument, tensor in zip(op.op_def.input_arg, op.inputs, strict=False)
    }
    gradient = arguments.get("grad", arguments.get("delta"))
    rows = [arguments["indices"]] if "indices" in arguments else []
    parts = [] if gradient is None else [gradient, *rows]
    return graph_ops.source_op(op.inputs[0]).name, parts


def _gradient_of_change(change: Any) -> Parts:
    """Return the gradient behind a change of a variable; empty if none is.

    Adam adds up the rows that occur twice; gradient descent scatters them. An optimizer
    of a program's own, such as BERT's, assigns what it makes of a whole gradient.
    """
    parts = _rows_before_adding(change)
    if parts:
        return parts
    indices = list(change.inputs[1:-1])
    values = _gradient_behind(change.inputs[-1], None)
    return [] if values is None else [values, *indices]


def _rows_before_adding(op: Operation) -> Parts:
    """Return the rows before an optimizer adds up those that occur twice."""
    todo, visited = [op], set()
    while todo:
        op = todo.pop(0)
        if op in visited or is_of_gradients(op):
            continue
        visited.add(op)
        if op.type == "UnsortedSegmentSum" and op.inputs[1].op.type == "Unique":
            values, indices = op.inputs[0], op.inputs[1].op.inputs[0]
            return [_gradient_behind(values, values), indices]
        todo += [tensor.op for tensor in op.inputs] + list(op.control_inputs)
    return []


def _is_whole_of_rows(op: Operation) -> bool:
    """Return whether an op adds the rows of a gradient up to a whole one."""
    return op.type in _MAKES_WHOLE and any(is_of_gradients(t.op) for t in op.inputs)


def _gradient_behind(tensor: Tensor, default: object) -> Any:
    """Return the gradient behind one that was clipped, decayed or scaled; or `default`.

    All of them keep the shape, so the way back goes through inputs of the same shape.
    """
    todo, visited = [tensor], set()
    while todo:
        current = todo.pop(0)
        if is_of_gradients(current.op) or _is_whole_of_rows(current.op):
            return current
        visited.add(current.name)
        inputs = [t for t in current.op.inputs if t.dtype == current.dtype]
        shape = str(current.shape)  # an unknown one has no list
        same = [t for t in inputs if str(t.shape) == shape]
        todo = [*(t for t in same if t.name not in visited), *todo]
    return default
