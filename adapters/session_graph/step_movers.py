"""Which ops move a counter, and how far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf

from hookbridge.adapters.session_graph import graph_ops
from hookbridge.ground import collected
from hookbridge.ground.protocols import Graph, Operation

_ADDS = ("AssignAdd", "AssignAddVariableOp", "ScatterAdd")
_READS = ("ReadVariableOp", "VarIsInitializedOp", "IsVariableInitialized")
CALLS = ("PartitionedCall", "StatefulPartitionedCall", "If", "While", "Case")


def _counts(kind: str) -> bool:
    return kind == "AssignAddVariableOp"


def _writes(kind: str) -> bool:
    return kind not in (*_READS, *graph_ops.PASSES)


def find_writers(graph: Graph, counter: Any) -> list[Any]:
    """Return the ops of a graph that may give a counter another value."""
    handle = collected.handle_op(counter)
    return [op for op in graph.get_operations() if writes_to(graph, op, handle)]


def writes_to(graph: Graph, op: Operation, own: object) -> bool:
    """Return whether an op may give a variable, by its own op, another value.

    Args:
      graph: the graph that has both.
      op: any op.
      own: the op of the variable itself, which its readers and writers have as input.
    """
    if op.type in _READS or op.type in graph_ops.PASSES:
        return False
    for index, tensor in enumerate(op.inputs):
        # An input that is not taken as a reference is only read.
        if (tensor.op is own or graph_ops.source_op(tensor) is own) and (
            tensor.dtype.base_dtype == "resource" or _takes_reference(op, index)
        ):
            # Not every call writes: TensorFlow's own hooks read the global step
            # through a conditional.
            return op.type not in CALLS or _function_uses(graph, op, own, _writes)
    return False


def find_movers(graph: Graph, counter: Any, writers: Iterable[Any]) -> list[Any]:
    """Return the writers that count a step, not those that initialize or restore."""
    handle = collected.handle_op(counter)
    movers = []
    for op in writers:
        if op.type in _ADDS:
            movers.append(op)
        elif op.type in ("Assign", "AssignVariableOp"):
            # `assign(step, step + 1)` counts; restoring a checkpoint does not.
            if op is not counter.initializer and handle in graph_ops.ancestors(
                t.op for t in list(op.inputs)[1:]
            ):
                movers.append(op)
        elif op.type in CALLS and _function_uses(graph, op, handle, _counts):
            movers.append(op)
    return movers


def find_accumulations(graph: Graph, counter: object) -> list[Any]:
    """Return the ops that add computed values, such as gradients, to variables."""
    # Metrics add to local variables.
    variables = collected.variables(graph, tf.compat.v1.GraphKeys.GLOBAL_VARIABLES)
    names = {v.name.partition(":")[0] for v in variables if v is not counter}
    return [
        op
        for op in graph.get_operations()
        if op.type in ("AssignAdd", "AssignAddVariableOp")
        and graph_ops.source_op(op.inputs[0]).name in names
        and graph_ops.constant_value(op.inputs[1]) is None
    ]


def _takes_reference(op: Operation, index: int) -> bool:
    arguments = op.op_def.input_arg if op.op_def is not None else ()
    return index >= len(arguments) or bool(arguments[index].is_ref)


def moves_by(mover: Any) -> int | None:
    """Return how far an op moves the counter, or None if only a run can tell."""
    if mover.type not in ("AssignAdd", "AssignAddVariableOp"):
        return None
    value = graph_ops.constant_value(mover.inputs[1])
    is_count = value is not None and value.ndim == 0 and value > 0
    return int(value) if is_count else None


def takes_token(op: Operation) -> bool:
    """Return whether an op stores the token of `SyncReplicasOptimizer` of a step."""
    if op.type not in ("Assign", "AssignVariableOp") or len(op.inputs) < 2:
        return False
    return bool(graph_ops.source_op(op.inputs[1]).type.startswith("QueueDequeue"))


def _function_uses(
    graph: Graph, op: Operation, own: object, is_wanted: Callable[[str], bool]
) -> bool:
    """Return whether an op calls a function in which a wanted op takes the counter.

    Args:
      graph: the graph that has the op.
      op: the op that calls.
      own: the op of the counter itself.
      is_wanted: returns whether ops of a type are looked for.
    """
    functions = {f.signature.name: f for f in graph.as_graph_def().library.function}

    def uses(name: str, index: int, visited: frozenset[str]) -> bool:
        function = functions.get(name)
        # No session runs a call of a function that the graph lacks.
        if function is None or name in visited:
            return False
        argument = function.signature.input_arg[index].name
        for node in function.node_def:
            inputs = [i.split(":")[0] for i in node.input if i[0] != "^"]
            if argument not in inputs:
                continue
            called = _function_names(node.attr)
            if not called and is_wanted(node.op):
                return True
            # The first input of a conditional is its predicate.
            shift = 1 if node.op in ("If", "StatelessIf", "Case") else 0
            position = inputs.index(argument) - shift
            if any(uses(inner, position, visited | {name}) for inner in called):
                return True
        return False

    index = next(i for i, t in enumerate(op.inputs) if graph_ops.source_op(t) is own)
    index -= 1 if op.type in ("If", "StatelessIf", "Case") else 0
    return any(uses(n, index, frozenset()) for n in _function_names(op.node_def.attr))


def _function_names(attributes: Mapping[str, Any]) -> list[str]:
    """Return names of the functions that an op's attributes refer to."""
    names = []
    for value in attributes.values():
        if value.HasField("func"):
            names.append(value.func.name)
        elif value.HasField("list"):
            names.extend(f.name for f in value.list.func)
    return names
