"""One `(fetches, feeds)` of a live session as a function of the eager runtime.

The part of the live graph that the fetches need is cut out and imported into a
`tf.function`, with the placeholders of variables replaced by the handles of the
eager variables. Around a training step the part is cut in two: what depends on
tensors of the step runs after it, the rest before it, so that whoever reads the
global step or a weight together with the step sees the value from before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge import compat
from hookbridge.adapters.session_resources import ONE_SHOT, SessionResources

v1 = tf.compat.v1

# Op types that only look at the resource they are given; every other op that
# takes a variable's handle counts as a write.
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
    """The ops that a set of fetches needs, in the order the graph made them.

    Attributes:
      before: ops that depend on no tensor of the step.
      after: ops that do, directly or through other ops.
      step_tensors: names of the step's tensors among their inputs.
      handles: names of the variable handles among their inputs.
      written: the subset of `handles` that some op may write to.
      iterators: names of one-shot iterators among their inputs.
    """

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
        self.step_tensors: set[str] = set()
        self.handles: set[str] = set()
        self.written: set[str] = set()
        self.iterators: set[str] = set()
        self.runs_step = False
        # Iterative depth-first walk: graphs are deeper than Python's stack.
        stack = list(roots)
        while stack:
            op = stack.pop()
            if op.name in ops or self_assigns.get(op.name, "") not in ("", *fed):
                # Initializers of the model's variables write what is there: only a
                # fed value (`Variable.load`) makes them an assignment.
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
            # What is fed does not run, not even for those that only wait for it.
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
        self.before: list[Any] = []
        self.after: list[Any] = []
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


def _function_names(node: Any) -> bool:
    return any(
        value.HasField("func") or value.list.func for value in node.attr.values()
    )


def graph_def(graph: Any, ops: Sequence[Any], resources: SessionResources) -> Any:
    """The GraphDef of just `ops`; their other inputs are left dangling.

    Args:
      graph: the graph of the ops.
      ops: what to take from it.
      resources: places variables, queues and tables of the ops.
    """
    result = v1.GraphDef()
    result.versions.CopyFrom(graph.graph_def_versions)
    needs_library = False
    for op in ops:
        node = result.node.add()
        node.CopyFrom(op.node_def)
        # A colocation with an op that was cut away makes the import fail, and
        # the runtime places by resource handle anyway.
        node.attr.pop("_class", None)
        resources.place(node)
        needs_library = needs_library or _function_names(node)
    if needs_library:
        result.library.CopyFrom(graph.as_graph_def().library)
        context = compat.private("eager_context")()
        for function in result.library.function:
            # Some kernels, those of iterators, ask the runtime for a function.
            if not context.has_function(function.signature.name):
                context.add_function_def(function)
    return result


class Part:
    """Imports one part of a closure into the function being built.

    Args:
      graph: the live graph.
      ops: the ops of this part.
      wanted: names of tensors and ops whose values the caller needs.
      resources: places resources of the ops.
    """

    def __init__(
        self,
        graph: Any,
        ops: Sequence[Any],
        wanted: Iterable[str],
        resources: SessionResources,
    ) -> None:
        self.is_empty = not ops
        self.names = {op.name for op in ops}
        self.wanted = [name for name in wanted if name.split(":")[0] in self.names]
        self._inputs = {t.name for op in ops for t in op.inputs} - {
            t.name for op in ops for t in op.outputs
        }
        self._graph_def = graph_def(graph, ops, resources)
        # Control inputs from outside the part come from ops that ran before it:
        # the parts are built in order and the function runs stateful ops in the
        # order they were built.
        for node in self._graph_def.node:
            kept = [
                i
                for i in node.input
                if i[0] != "^" or i.removeprefix("^") in self.names
            ]
            del node.input[:]
            node.input.extend(kept)

    def build(self, values: Mapping[str, Any], fed: Iterable[str]) -> dict[str, Any]:
        """Adds the ops to the current function graph.

        Args:
          values: `{tensor name: tensor}` for all that comes from outside.
          fed: names of fed tensors; they replace tensors of this part too.

        Returns:
          `{name: tensor or op}` for the wanted names.
        """
        if self.is_empty:
            return {}
        outside = self._inputs | {n for n in fed if n.split(":")[0] in self.names}
        elements = tf.graph_util.import_graph_def(
            self._graph_def,
            input_map={name: values[name] for name in outside if name in values},
            return_elements=self.wanted,
            # With the slash: the same names in both parts and in every function.
            name="hookbridge/",
        )
        # A function keeps stateful ops by itself, but would drop what is neither
        # stateful nor returned, such as the assignment to a reference variable.
        v1.get_default_graph().control_outputs.extend(
            e
            for e in elements
            if isinstance(e, tf.Operation) and not e.op_def.is_stateful
        )
        return dict(zip(self.wanted, elements, strict=True))


def build_op(graph: Any, op: Any, resources: SessionResources) -> Any:
    """Builds one op without inputs in the current function; returns its output."""
    name = op.outputs[0].name
    return Part(graph, [op], [name], resources).build({}, ())[name]


class SessionProgram:
    """The fetches of one run, ready to be built around a step or alone.

    Args:
      graph: the live graph.
      fetches: unique tensors and operations to fetch.
      feeds: fed tensors, in the order their values will come.
      resources: the variables, queues and so on of hooks in this session.
    """

    def __init__(
        self,
        graph: Any,
        fetches: Sequence[Any],
        feeds: Sequence[Any],
        resources: SessionResources,
    ) -> None:
        self.graph = graph
        self._resources = resources
        self.feeds = list(feeds)
        self.fed = frozenset(t.name for t in feeds)
        fetched = [f for f in fetches if f.name not in self.fed]
        self.tensors = [f for f in fetched if not isinstance(f, tf.Operation)]
        roots = [f if isinstance(f, tf.Operation) else f.op for f in fetched]
        self.closure = Closure(
            roots,
            self.fed,
            frozenset(graph.handles),
            frozenset(graph.step_tensors),
            graph.step_op.name,
            graph.self_assigns,
        )
        targets = [op.name for op in roots]
        names = [t.name for t in self.tensors]
        after_inputs = {t.name for op in self.closure.after for t in op.inputs}
        self._before = Part(
            graph,
            self.closure.before,
            dict.fromkeys([*names, *targets, *sorted(after_inputs)]),
            resources,
        )
        self._after = Part(
            graph, self.closure.after, dict.fromkeys([*names, *targets]), resources
        )
        self._concrete: Any = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to run beside the step itself."""
        return not (
            self.closure.before or self.closure.after or self.closure.step_tensors
        )

    def handles(self) -> dict[str, Any]:
        function_graph = v1.get_default_graph()
        handles = {
            name: self.graph.handles[name].handle
            for name in sorted(self.closure.handles)
        }
        for name in sorted(self.closure.iterators):
            handles[name] = self._resources.iterator(name)
        return {f"{n}:0": function_graph.capture(h) for n, h in handles.items()}

    def build_before(self, feed_values: Sequence[Any]) -> dict[str, Any]:
        """Builds what runs before the step; returns the values it knows."""
        values = self.handles()
        values.update(zip((t.name for t in self.feeds), feed_values, strict=True))
        values.update(self._before.build(values, self.fed))
        return values

    def build_after(
        self, values: dict[str, Any], step_values: Mapping[str, Any]
    ) -> list[Any]:
        """Builds what runs after the step; returns the fetched tensors."""
        values = dict(values)
        values.update({f"{name}:0": v for name, v in step_values.items()})
        values.update(self._after.build(values, self.fed))
        return [values[t.name] for t in self.tensors]

    def run_alone(
        self, feed_values: Sequence[Any], step_values: Mapping[str, Any]
    ) -> list[Any]:
        """Runs everything without a step.

        Args:
          feed_values: eager tensors, one for each of `feeds`.
          step_values: `{step tensor name: eager tensor}`, from the last step.

        Returns:
          Eager tensors, one for each of `tensors`.
        """
        names = sorted(self.closure.step_tensors)
        arguments = [*feed_values, *(step_values[name] for name in names)]
        if self._concrete is None:
            self._concrete = self._trace(names, arguments)
        return list(self._concrete(*arguments))

    def _trace(self, names: list[str], arguments: Sequence[Any]) -> Callable[..., Any]:
        count = len(self.feeds)

        @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
        def body(*args: Any) -> list[Any]:
            known = self.build_before(args[:count])
            return self.build_after(known, dict(zip(names, args[count:], strict=True)))

        shapes = [t.shape for t in self.feeds] + [tf.TensorShape(None)] * len(names)
        signature = [
            tf.TensorSpec(shape, a.dtype)
            for shape, a in zip(shapes, arguments, strict=True)
        ]
        compiled: Any = tf.function(body, input_signature=signature)
        return compiled.get_concrete_function()  # type: ignore[no-any-return]
