"""The variables that a step moves besides those that it trains: moving averages.

`UPDATE_OPS` has those of TensorFlow's own layers. A program that writes its batch
normalization itself, or keeps averages by `ExponentialMovingAverage`, puts their
updates wherever its train op reaches them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from hookbridge.adapters.session_graph import graph_ops, session_variables, step_movers
from hookbridge.ground import collected
from hookbridge.ground.protocols import Graph, Variable
from hookbridge.ground.walks import reached
from hookbridge.reference.record.graph_gradients import is_of_gradients


def updated_variables(
    graph: Graph, ops: Collection[Any], known: Iterable[Any]
) -> list[Any]:
    """Return the variables with real numbers that ops write, without `known` and slots.

    An optimizer's slots are what its update ops take, or what a gradient moves.
    """
    taken = {
        collected.origin(tensor).op
        for op in graph.get_operations()
        if graph_ops.is_apply(op)
        for tensor in op.inputs
    }
    taken |= {collected.handle_op(variable) for variable in known}
    return [
        variable
        for variable in session_variables.saved_variables(graph)
        if variable.dtype.base_dtype.is_floating
        and collected.handle_op(variable) not in taken
        and _is_moved(graph, ops, variable)
    ]


def _is_moved(graph: Graph, ops: Collection[Any], variable: Variable) -> bool:
    """Return whether ops write a variable, but nothing that a gradient computed."""
    handle = collected.handle_op(variable)
    writers = [
        op
        for op in _users(handle)
        if op in ops and step_movers.writes_to(graph, op, handle)
    ]
    of_gradients = any(map(is_of_gradients, reached(writers, graph_ops.inputs_of)))
    return bool(writers) and not of_gradients


def _users(own: Any) -> frozenset[Any]:
    """Return the ops that take a variable, also through ops that only pass it on."""

    def users_of_passed(op: Any) -> list[Any]:
        is_passed = op is own or op.type in graph_ops.PASSES
        outputs = op.outputs if is_passed else []
        return [user for output in outputs for user in output.consumers()]

    return reached([own], users_of_passed) - {own}
