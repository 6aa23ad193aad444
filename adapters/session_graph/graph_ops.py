"""Walking a graph: what an op needs, where a tensor comes from, what is fetched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from hookbridge.ground.protocols import Operation, Tensor
from hookbridge.ground.walks import reached

# Ops that pass a tensor on unchanged.
PASSES = ("Identity", "RefIdentity", "Enter", "RefEnter", "Switch", "RefSwitch")

# The scope of v1 optimizers around the update of one variable.
_ROW_UPDATES = re.compile(r"(^|/)update_[^/]+/[^/]+$")


def ancestors(ops: Iterable[Any]) -> frozenset[Any]:
    """Return every op that has to run for `ops`, themselves included."""
    return reached(ops, lambda op: [*inputs_of(op), *op.control_inputs])


def inputs_of(op: Any) -> list[Any]:
    """Return the ops whose values an op takes."""
    return [tensor.op for tensor in op.inputs]


def source_op(tensor: Tensor) -> Any:
    """Return the op a tensor comes from, looking through ops that only pass it on."""
    op = tensor.op
    while op.type in PASSES and op.inputs:
        op = op.inputs[0].op
    return op


def fetchable(tensor: Tensor) -> Any:
    """Return a tensor of the same value that a session can fetch; None without one.

    A conditional or a loop hands its outputs on, and its own op cannot be fetched.
    """
    if tensor.graph.is_fetchable(tensor):
        return tensor
    passed_on = (op for op in tensor.consumers() if op.type == "Identity")
    values = (fetchable(op.outputs[0]) for op in passed_on)
    return next((value for value in values if value is not None), None)


def constant_value(tensor: Tensor) -> Any:
    """Return the value of a `Const` as an array, None for any other tensor."""
    # `tf.get_static_value` would forbid feeding the tensor from then on.
    if tensor.op.type != "Const":
        return None
    return tf.make_ndarray(tensor.op.get_attr("value"))


def is_apply(op: Operation) -> bool:
    """Return whether an op is an optimizer's update of a variable."""
    kind = op.type.removeprefix("Resource").removeprefix("Sparse")
    return kind.startswith("Apply") and kind != "ApplyGradient"


def updates_rows(op: Operation) -> bool:
    """Return whether an optimizer without an op for that updates rows by it."""
    scatters = re.fullmatch(r"(Resource)?Scatter(Add|Sub)", op.type)
    return scatters is not None and _ROW_UPDATES.search(op.name) is not None


def leaves(fetches: Any) -> Iterable[Any]:
    if fetches is None:
        return
    if isinstance(fetches, (list, tuple)):
        for item in fetches:
            yield from leaves(item)
    elif isinstance(fetches, Mapping):
        for item in fetches.values():
            yield from leaves(item)
    elif hasattr(type(fetches), "__attrs_attrs__"):
        for field in type(fetches).__attrs_attrs__:
            yield from leaves(getattr(fetches, field.name))
    else:
        yield fetches


def parts(leaf: object) -> list[Any]:
    """Return a sparse or ragged fetch as its dense tensors; anything else as itself."""
    if isinstance(leaf, (tf.compat.v1.SparseTensor, tf.IndexedSlices, tf.RaggedTensor)):
        return list(tf.nest.flatten(leaf, expand_composites=True))
    return [leaf]


def recompute(value: object, after: Any) -> Any:
    """Copy the ops between a metric's variables and its value, after an op."""
    copies: dict[Any, Any] = {}

    def copy(tensor: Any) -> Any:
        op = tensor.op
        if op.type in ("VarHandleOp", "VariableV2", "Const", "Placeholder"):
            return tensor
        if op not in copies:
            inputs = [copy(t) for t in op.inputs]
            with tf.control_dependencies([after]):
                copies[op] = op.graph.create_op(
                    op.type,
                    inputs,
                    [t.dtype for t in op.outputs],
                    attrs=dict(op.node_def.attr),
                )
        return copies[op].outputs[tensor.value_index]

    return copy(value)
