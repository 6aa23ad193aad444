"""Which ops of the live graph a set of fetches needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hookbridge.adapters.live_session.resources import ONE_SHOT

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


class Closure:
    """The ops that a set of fetches needs, in the order the graph made them."""

    def __init__(
        self,
        roots: Iterable[Any],
        fed: frozenset[str],
        handles: frozenset[str],
        step_ops: frozenset[str],
        step_op_name: str,
        self_assigns: Mapping[str, str],
    ) -> None:
        ops: dict[str, Any] = {}
        # The placeholders of step tensors among their inputs.
        self.step_tensors: set[str] = set()
        # Names of the variable handles among their inputs.
        self.handles: set[str] = set()
        # The subset of `handles` that some op may write to.
        self.written: set[str] = set()
        # Names of one-shot iterators among their inputs.
        self.iterators: set[str] = set()
        self.runs_step = False
        # Not recursive: graphs can be deeper than Python's stack.
        stack = list(roots)
        while stack:
            op = stack.pop()
            if op.name in ops or self_assigns.get(op.name, "") not in ("", *fed):
                # The initializer of a model variable writes the value that the variable
                # has, so it is left out. Only a fed value (`Variable.load`) makes it an
                # assignment.
                continue
            if op.name == step_op_name:
                self.runs_step = True
            elif op.name in handles:
                self.handles.add(op.name)
            elif op.type == ONE_SHOT:
                self.iterators.add(op.name)
            ops[op.name] = op
            for tensor in op.inputs:
                if tensor.name in fed:
                    continue
                if tensor.op.name in step_ops:
                    self.step_tensors.add(tensor.op.name)
                if tensor.op.name in handles and op.type not in READ_OPS:
                    self.written.add(tensor.op.name)
                stack.append(tensor.op)
            # A fed op does not run, not even for ops that only wait for it.
            stack.extend(c for c in op.control_inputs if not _is_any_of(c.outputs, fed))
        for op in roots:
            if op.name in step_ops:
                self.step_tensors.add(op.name)
        inner = [
            op
            for op in sorted(ops.values(), key=_creation_order)
            if op.name not in handles
            and op.name not in self.iterators
            and op.name not in step_ops
            and op.name != step_op_name
        ]
        late: set[str] = set()
        self.before: list[Any] = []  # ops that depend on no tensor of the step
        self.after: list[Any] = []  # ops that do, directly or through other ops
        for op in inner:
            late_input = any(
                t.name not in fed and (t.op.name in step_ops or t.op.name in late)
                for t in op.inputs
            ) or any(
                c.name in late or c.name in step_ops or c.name == step_op_name
                for c in op.control_inputs
            )
            if late_input:
                late.add(op.name)
            (self.after if late_input else self.before).append(op)


def _is_any_of(tensors: Iterable[Any], names: frozenset[str]) -> bool:
    return any(t.name in names for t in tensors)


def _creation_order(op: Any) -> int:
    return int(op._id)
