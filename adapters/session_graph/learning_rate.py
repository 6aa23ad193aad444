"""The learning rate of a graph: where it is, how it is read and how it is set."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hookbridge import errors
from hookbridge.adapters.session_graph import graph_ops, log_sources, session_variables
from hookbridge.ground import collected
from hookbridge.ground.protocols import Graph, Operation, Tensor

Kind = Literal["variable", "fed", "schedule"]
_NAMES = re.compile(r"(^|/)(learning_rate|lr)(_[0-9]+)?$")


@dataclass(frozen=True, eq=False)
class GraphNumber:
    """A number that an optimizer of a graph uses."""

    tensor: Any  # what is fetched to read it
    # "variable" is assigned through the session; "fed" (a constant or a placeholder,
    # with or without default) is overridden by a feed in each training step; a
    # "schedule" is computed and cannot be set.
    kind: Kind
    variable: Any = None
    # The value of a constant or of a placeholder's constant default, read from the
    # graph without a run. A run may need a batch: the constant may wait for other ops
    # under `control_dependencies` (the usual way to run UPDATE_OPS).
    default: Any = None


@dataclass(frozen=True, eq=False)
class LearningRate(GraphNumber):
    """A learning rate in a graph."""

    update: Any = None  # an update op of its optimizer, or None
    steps: tuple[Any, ...] = ()  # what a schedule reads of the global step


def find(graph: Graph, choice: Any = None) -> list[LearningRate]:
    """Return the learning rates of a graph, one for each optimizer.

    They are the `lr` or `alpha` inputs of the optimizers' update ops, traced back to
    their origin.

    Args:
      graph: the graph that trains.
      choice: the rate that the user named, a tensor, a variable or a name; None to look
        for all of them.

    Raises:
      errors.InvalidArgumentError: `choice` is not a floating-point scalar.
      errors.UnknownTensorError: the graph has no tensor of that name.
    """
    rates: dict[Any, LearningRate] = {}
    for op in graph.get_operations():
        tensor = _rate_input(op)
        if tensor is not None:
            rate = _rate_at(tensor, graph, op)
            rates.setdefault(rate.tensor.op, rate)
    if choice is not None:
        rate = _given(graph, choice)
        return [rates.get(rate.tensor.op, rate)]
    return list(rates.values()) or _by_name(graph)


def _given(graph: Graph, choice: object) -> LearningRate:
    """Return the rate that a user has named; refuse all but a floating-point scalar."""
    if isinstance(choice, str):
        choice = log_sources.tensor_named(choice, graph, "`learning_rate`")
    expected = (
        "a tensor or variable of the training graph or its name such as "
        '"learning_rate:0"'
    )
    tensor = log_sources.tensor_of(choice, graph, "`learning_rate`", expected)
    if tensor.shape.rank not in (0, None) or not tensor.dtype.base_dtype.is_floating:
        raise errors.InvalidArgumentError(
            f"`learning_rate` is `{tensor.name}` of type {tensor.dtype.name} and shape "
            f"{tensor.shape}; expected a scalar of a floating-point type."
        )
    return _rate_at(tensor, graph)


def _rate_input(op: Operation) -> Any:
    if not graph_ops.is_apply(op) or op.op_def is None:
        return None
    for index, argument in enumerate(op.op_def.input_arg):
        if argument.name in ("lr", "alpha") and index < len(op.inputs):
            return op.inputs[index]
    return None


def number_at(tensor: Tensor, graph: Graph) -> GraphNumber:
    """Return where an optimizer's input comes from, through casts and reads."""
    variable = collected.variable_behind(tensor)
    if variable is not None:
        return GraphNumber(graph.as_graph_element(variable), "variable", variable)
    origin = collected.origin(tensor)
    if origin.op.type in ("Const", "Placeholder", "PlaceholderWithDefault"):
        return GraphNumber(origin, "fed", default=_static(origin))
    return GraphNumber(tensor, "schedule")


def _rate_at(
    tensor: Tensor, graph: Graph, update: Operation | None = None
) -> LearningRate:
    """Return the learning rate that an update op takes from a tensor."""
    number = number_at(tensor, graph)
    steps = _reads_of_step(tensor, graph) if number.kind == "schedule" else ()
    return LearningRate(**vars(number), update=update, steps=steps)


def _reads_of_step(tensor: Tensor, graph: Graph) -> tuple[Any, ...]:
    """Return the tensors through which the global step reaches another tensor."""
    counter = collected.global_step(graph)
    if counter is None:
        return ()
    handle = collected.handle_op(counter)
    uses = [
        op
        for op in graph_ops.ancestors([tensor.op])
        if op.outputs and any(input_.op is handle for input_ in op.inputs)
    ]
    reads = {
        (op if op.type == "ReadVariableOp" else handle).outputs[0].name for op in uses
    }
    return tuple(map(graph.get_tensor_by_name, sorted(reads)))


def copies(tensor: Tensor) -> tuple[Any, ...]:
    """Return a tensor and those that pass it on: a hook may feed each in its place."""
    tensors: list[Any] = []
    waiting: list[Any] = [tensor]
    while waiting:
        tensors.append(waiting.pop(0))
        waiting += [
            op.outputs[0]
            for op in tensors[-1].consumers()
            if op.type in ("Identity", "Cast")
        ]
    return tuple(t for t in tensors if t.graph.is_feedable(t))


def placeholder(rates: Sequence[LearningRate]) -> Any:
    """Return the one learning rate if it is a placeholder, or None."""
    if len(rates) == 1 and "Placeholder" in rates[0].tensor.op.type:
        return rates[0].tensor
    return None


def _static(tensor: Tensor) -> Any:
    if tensor.op.type == "PlaceholderWithDefault":
        tensor = tensor.op.inputs[0]
    return graph_ops.constant_value(tensor)


def _by_name(graph: Graph) -> list[LearningRate]:
    """Return learning rates that no update op has: Keras >= 2.11 makes none."""
    # TensorFlow numbers equal names: a second learning rate is `learning_rate_1`.
    rates = [
        LearningRate(graph.as_graph_element(variable), "variable", variable)
        for variable in session_variables.all_variables(graph)
        if _NAMES.search(variable.op.name) and variable.shape.rank == 0
    ]
    if rates:
        return rates
    return [
        LearningRate(op.outputs[0], "fed", default=_static(op.outputs[0]))
        for op in graph.get_operations()
        if op.type in ("Const", "Placeholder", "PlaceholderWithDefault")
        and _NAMES.search(op.name)
    ]
