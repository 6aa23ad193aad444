"""Which ops of the live graph a set of fetches needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hookbridge.adapters.live_session.growing_graph import GrowingGraph
from hookbridge.adapters.live_session.imported_ops import ONE_SHOT

# Ops that only read the variable whose handle they take; all others count as writes.
READ_OPS = frozenset(
    {
        "ReadVariableOp",
        "VarIsInitializedOp",
        "VariableShape",
        "ResourceGather",
        "ResourceGatherNd",
    }
)


class NeededOps:
    """The ops that a set of fetches needs, in the order the graph made them."""

    def __init__(
        self, graph: GrowingGraph, roots: Sequence[Any], fed: frozenset[str]
    ) -> None:
        handles, step_ops = graph.variables.handles.keys(), graph.step_tensors.keys()
        step_op_name = graph.step_op.name
        ops = _find_running(roots, fed, graph.variables.self_assigns)
        inputs = [(op, t) for op in ops for t in op.inputs if t.name not in fed]
        # The placeholders of step tensors among their inputs.
        self.step_tensors: set[str] = {t.op.name for _, t in inputs} & step_ops
        self.step_tensors |= {op.name for op in roots} & step_ops
        names = {op.name for op in ops}
        self.handles: set[str] = names & handles  # names of the variable handles
        # Those of the handles that some op may write to.
        self.written: set[str] = handles & {
            t.op.name for op, t in inputs if op.type not in READ_OPS
        }
        self.iterators: set[str] = {op.name for op in ops if op.type == ONE_SHOT}
        self.runs_step: bool = step_op_name in names
        self.before: list[Any] = []  # ops that depend on no tensor of the step
        self.after: list[Any] = []  # ops that do, directly or through other ops
        step = {*step_ops, step_op_name}
        outside = handles | self.iterators | step
        self._split([op for op in ops if op.name not in outside], step, fed)

    def _split(self, ops: Sequence[Any], late: set[str], fed: frozenset[str]) -> None:
        """Add each op to `before`; to `after` and `late` if it depends on `late`."""
        for op in ops:
            needed = [t.op for t in op.inputs if t.name not in fed]
            if any(n.name in late for n in (*needed, *op.control_inputs)):
                late.add(op.name)
                self.after.append(op)
            else:
                self.before.append(op)


def _find_running(
    roots: Iterable[Any], fed: frozenset[str], self_assigns: Mapping[str, str]
) -> list[Any]:
    """Return the ops that run for `roots`, in the order the graph made them."""
    ops: dict[str, Any] = {}
    # Not recursive: graphs can be deeper than Python's stack.
    stack = list(roots)
    while stack:
        op = stack.pop()
        if op.name in ops or self_assigns.get(op.name, "") not in ("", *fed):
            # The initializer of a model variable writes the value that the variable
            # has, so it is left out. Only a fed value (`Variable.load`) makes it an
            # assignment.
            continue
        ops[op.name] = op
        stack.extend(t.op for t in op.inputs if t.name not in fed)
        # A fed op does not run, not even for ops that only wait for it.
        stack.extend(
            control_input
            for control_input in op.control_inputs
            if not any(t.name in fed for t in control_input.outputs)
        )
    return sorted(ops.values(), key=lambda op: op._id)
