"""Copies ops of the live graph into a `tf.function`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import compat
from hookbridge.adapters.live_session.resources import SessionResources

v1 = tf.compat.v1


def _graph_def(
    graph: Any, ops: Sequence[Any], resources: SessionResources
) -> tuple[Any, bool]:
    """The GraphDef of `ops` alone, and whether they have resources of a session."""
    result = v1.GraphDef()
    result.versions.CopyFrom(graph.graph_def_versions)
    needs_library = has_resources = False
    for op in ops:
        node = result.node.add()
        node.CopyFrom(op.node_def)
        # A colocation with an op outside the part would make the import fail. The
        # runtime places ops by their resource handles anyway.
        node.attr.pop("_class", None)
        has_resources = resources.place(node) or has_resources
        needs_library = needs_library or any(
            value.HasField("func") or value.list.func for value in node.attr.values()
        )
    if needs_library:
        result.library.CopyFrom(graph.as_graph_def().library)
        context = compat.private("eager_context")()
        for function in result.library.function:
            # The kernels of iterators ask the runtime for functions by name.
            if not context.has_function(function.signature.name):
                context.add_function_def(function)
    return result, has_resources


class Part:
    """Imports one part of a closure into the function being built."""

    def __init__(
        self,
        graph: Any,
        ops: Sequence[Any],
        outputs: Iterable[str],
        resources: SessionResources,
    ) -> None:
        self.is_empty = not ops
        self._names = {op.name for op in ops}
        self._outputs = [name for name in outputs if name.split(":")[0] in self._names]
        self._inputs = {t.name for op in ops for t in op.inputs} - {
            t.name for op in ops for t in op.outputs
        }
        self._graph_def, self.has_resources = _graph_def(graph, ops, resources)
        # Control inputs from outside the part are dropped: those ops run before it, as
        # a function runs stateful ops in the order in which they were built.
        for node in self._graph_def.node:
            inputs = [
                i
                for i in node.input
                if i[0] != "^" or i.removeprefix("^") in self._names
            ]
            del node.input[:]
            node.input.extend(inputs)

    def key(self) -> Any:
        """Equal for parts that build the same ops and outputs."""
        return self._graph_def.SerializeToString(deterministic=True), *self._outputs

    def build(self, values: Mapping[str, Any], fed: Iterable[str]) -> dict[str, Any]:
        """Adds the ops to the current function graph; a fed value replaces a tensor."""
        if self.is_empty:
            return {}
        outside = self._inputs | {n for n in fed if n.split(":")[0] in self._names}
        elements = tf.graph_util.import_graph_def(
            self._graph_def,
            input_map={name: values[name] for name in outside if name in values},
            return_elements=self._outputs,
            # The slash keeps the names equal in both parts and in every function.
            name="hookbridge/",
        )
        # A function drops ops that are neither stateful nor returned, such as the
        # assignment to a reference variable.
        v1.get_default_graph().control_outputs.extend(
            e
            for e in elements
            if isinstance(e, tf.Operation) and not e.op_def.is_stateful
        )
        return dict(zip(self._outputs, elements, strict=True))


def build_op(graph: Any, op: Any, resources: SessionResources) -> Any:
    """Builds one op without inputs in the current function; returns its output."""
    name = op.outputs[0].name
    return Part(graph, [op], [name], resources).build({}, ())[name]
