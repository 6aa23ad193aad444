"""Copies ops of the live graph into a `tf.function`.

The runtime keeps variables, queues, tables and iterators by name for the whole process.
Those that hooks make are new in each session, shared by its runs, and end with it: they
are in a container of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge.ground import compat
from hookbridge.ground.protocols import Graph

v1 = tf.compat.v1
_COUNTER = itertools.count()

# The only type of op whose resource belongs to its kernel and has no name.
ONE_SHOT = "OneShotIterator"


def compile_function(function: Callable[..., Any], **options: object) -> Any:
    """Return a `tf.function` of a function that autograph need not convert."""
    return tf.function(tf.autograph.experimental.do_not_convert(function), **options)


def _graph_def(
    graph: Graph, ops: Sequence[Any], resources: SessionResources
) -> tuple[Any, bool]:
    """Return the GraphDef of `ops` alone, and whether it has session resources."""
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


class ImportedOps:
    """Imports one part of the needed ops into the function being built."""

    def __init__(
        self,
        graph: Graph,
        ops: Sequence[Any],
        outputs: Iterable[str],
        resources: SessionResources,
    ) -> None:
        self.is_empty: bool = not ops
        self._names = {op.name for op in ops}
        self._outputs = [name for name in outputs if name.split(":")[0] in self._names]
        self._inputs = {t.name for op in ops for t in op.inputs} - {
            t.name for op in ops for t in op.outputs
        }
        self.has_resources: bool
        self._graph_def, self.has_resources = _graph_def(graph, ops, resources)
        # Control inputs from outside the part are dropped: those ops run before it, as
        # a function runs stateful ops in the order in which they were built.
        for node in self._graph_def.node:
            inputs = [i for i in node.input if i[0] != "^" or i[1:] in self._names]
            del node.input[:]
            node.input.extend(inputs)

    def key(self) -> Any:
        """Return a key that is equal for parts that build the same ops and outputs."""
        return self._graph_def.SerializeToString(deterministic=True), *self._outputs

    def build(self, values: Mapping[str, Any], fed: Iterable[str]) -> dict[str, Any]:
        """Add the ops to the current function graph; a fed value replaces a tensor."""
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


class SessionResources:
    """The resources of one live session."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._container = f"hookbridge{next(_COUNTER)}"
        self._named: set[str] = set()
        # A one-shot iterator dies with the function that made it.
        self._iterators: dict[str, tuple[Any, Any]] = {}  # `(handle, function)`

    def place(self, node: tf.compat.v1.NodeDef) -> bool:
        """Put the resource of a node into this container; whether it has one."""
        if "container" not in node.attr or "shared_name" not in node.attr:
            return False
        node.attr["container"].s = self._container.encode()
        if node.op != ONE_SHOT:
            # Without a name each function would make another resource.
            node.attr["shared_name"].s = (
                node.attr["shared_name"].s or node.name.encode()
            )
            if not node.input:
                self._named.add(node.name)
        return True

    def iterator(self, name: str) -> Any:
        """Return the handle of the one-shot iterator that the op `name` makes."""
        if name not in self._iterators:
            with tf.init_scope():  # a run is being traced
                build = compile_function(lambda: self._build(name))
                function = build.get_concrete_function()
                self._iterators[name] = function(), function
        return self._iterators[name][0]

    def _build(self, name: str) -> Any:
        """Build an op without inputs in the current function; return its output."""
        op = self._graph.get_operation_by_name(name)
        output = op.outputs[0].name
        return ImportedOps(self._graph, [op], [output], self).build({}, ())[output]

    def _destroy(self, names: Iterable[str]) -> None:
        for handle in map(self._build, names):
            if handle.dtype == tf.resource:
                tf.raw_ops.DestroyResourceOp(resource=handle, ignore_lookup_error=True)

    def destroy(self) -> None:
        """Free the resources that the session's runs have made."""
        self._iterators.clear()
        names, self._named = sorted(self._named), set()
        if names:
            compile_function(lambda: self._destroy(names)).get_concrete_function()()
