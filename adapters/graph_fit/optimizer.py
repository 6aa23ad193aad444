"""The learning rate and the gradients of a model's train function."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def learning_rate(model: Any) -> Any:
    """The learning rate: a variable, a schedule or None."""
    optimizer = getattr(model, "optimizer", None)
    rate = getattr(optimizer, "learning_rate", None)
    return getattr(optimizer, "lr", None) if rate is None else rate


def rate_tensor(model: Any, counter: Any) -> Any:
    """The tensor that `learning_rate:0` means, or None."""
    # The value of a schedule is computed for hooks alone: they can fetch it, not feed
    # it.
    rate = learning_rate(model)
    if callable(rate) and not isinstance(rate, tf.Variable):
        tensor = tf.identity(rate(tf.cast(counter, tf.float32)))
        tensor.graph.prevent_feeding(tensor)
        return tensor
    return getattr(rate, "_graph_element", rate)


def reads(variable: Any) -> list[Any]:
    """The tensors by which the graph reads a variable."""
    return [op.outputs[0] for op in _uses(variable) if op.type == "ReadVariableOp"]


def gradients(model: Any) -> dict[str, Any]:
    """`{"gradients/<variable>": tensor}` of the dense gradients of the weights."""
    tensors = {}
    for variable in model.trainable_weights:
        for op in _uses(variable):
            if not op.type.startswith("ResourceApply"):
                continue
            name = variable.op.name.removeprefix(f"{model.name}/")
            for arg, tensor in zip(op.op_def.input_arg, op.inputs, strict=True):
                if arg.name in ("grad", "delta"):
                    tensors[f"gradients/{name}"] = tensor
    return tensors


def _uses(variable: Any) -> list[Any]:
    """The ops that use a variable; none if it is no resource variable."""
    handle = getattr(variable, "handle", None)
    return [] if handle is None else list(handle.consumers())
