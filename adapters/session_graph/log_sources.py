"""Where the entries of a callback's `logs` come from in a graph."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.session_graph import estimator_stack, graph_ops
from hookbridge.ground import collected
from hookbridge.ground.arguments import shown, with_arguments
from hookbridge.ground.protocols import Graph, Session
from hookbridge.ground.texts.nearest_names import suggestion

# The entry of `logs=` with the number of examples in the batch. Keras weights the mean
# loss of an epoch with it. Callbacks do not see it.
SIZE = "size"


class LogSource(NamedTuple):
    """One entry of `logs`."""

    key: str
    tensor: Any  # what is fetched at each step
    streaming: bool = False  # whether it is a mean over the steps already
    resets: tuple[Any, ...] = ()  # run as an epoch begins
    value: Any = None  # reads a streaming metric without updating it

    @property
    def scalar(self) -> bool:
        """Return whether it is a number, which can share one fetch with the others."""
        return self.maybe_scalar and self.tensor.shape.rank == 0

    @property
    def maybe_scalar(self) -> bool:
        """Return whether it may be a number: its rank may not be known yet."""
        dtype = self.tensor.dtype.base_dtype
        number = dtype.is_floating or dtype.is_integer or dtype.is_bool
        return bool(number) and self.tensor.shape.rank in (0, None)


def resolve(key: str, spec: Any, graph: Graph) -> LogSource:
    """Return the source that one entry of `logs=` means."""
    # A function is called on each graph: a model_fn makes new tensors each time.
    if callable(spec) and not hasattr(spec, "result"):
        spec = with_arguments(f"logs[{key!r}]", spec)()
    if isinstance(spec, str):
        spec = tensor_named(spec, graph, f"logs[{key!r}]")
    if isinstance(spec, (tuple, list)) and len(spec) == 2:
        value = collected.value_of(graph.as_graph_element(spec[0]))
        return _number(streaming_source(key, value, spec[1], graph))
    if callable(getattr(spec, "result", None)) and hasattr(spec, "variables"):
        updates = list(getattr(spec, "updates", ()) or ())
        value = spec.result()
        with tf.control_dependencies(updates):
            updated = tf.identity(spec.result())
        resets = tuple(v.initializer for v in spec.variables)
        return LogSource(key, updated, True, resets, value)
    expected = (
        'a tensor of the training graph, its name such as "metrics/acc:0", a pair '
        "(value, update_op), a Keras metric, or a function that returns one of those"
    )
    return _number(LogSource(key, tensor_of(spec, graph, f"logs[{key!r}]", expected)))


def _number(source: LogSource) -> LogSource:
    if not source.maybe_scalar:
        tensor = source.tensor
        raise errors.InvalidArgumentError(
            f"logs[{source.key!r}] is `{tensor.name}` of type {tensor.dtype.name} and "
            f"shape {tensor.shape}; expected a scalar number, such as its mean."
        )
    return source


def streaming_source(key: str, value: Any, update: Any, graph: Graph) -> LogSource:
    """Return a metric with its own mean; `update` is an op, or the value after it."""
    update = graph.as_graph_element(update)
    if isinstance(update, tf.Operation) or update.shape.rank != 0:
        operation = getattr(update, "op", update)
        with tf.control_dependencies([operation]):
            # `value` may have been computed before the update; a copy of its op that
            # waits for the update has the new value.
            tensor = graph_ops.recompute(value, operation)
    else:
        tensor = update
    local = collected.variables(graph, tf.compat.v1.GraphKeys.METRIC_VARIABLES)
    reached = graph_ops.ancestors([getattr(update, "op", update), value.op])
    resets = tuple(v.initializer for v in local if collected.handle_op(v) in reached)
    return LogSource(key, tensor, True, resets, value)


def tensor_of(value: object, graph: Graph, where: str, expected: str) -> Any:
    """Return the tensor of a graph that a user gave."""
    try:
        return collected.value_of(graph.as_graph_element(value, allow_operation=False))
    except (AttributeError, TypeError, ValueError) as e:
        raise errors.InvalidArgumentError(
            f"{where} is {shown(value)}; expected {expected}. TensorFlow says: {e}"
        ) from e


def tensor_named(name: str, graph: Graph, where: str) -> Any:
    """Return a tensor by name; `":0"` may be left out."""
    try:
        return graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
    except (KeyError, ValueError):
        names = [t.name for op in graph.get_operations() for t in op.outputs]
        raise errors.UnknownTensorError(
            f'{where} names the tensor "{name}", which the graph does not have. '
            f"Expected the name of one of its tensors{suggestion(name, names)}."
        ) from None


def find_loss(graph: Graph) -> Any:
    """Return the loss of a training graph, or None.

    `tf.losses` may be summed up for it.
    """
    known = known_loss(graph)
    if known is None and collected.tensors(graph, tf.compat.v1.GraphKeys.LOSSES):
        return _total_loss()
    return known


def _total_loss() -> Any:
    """Return the sum of `tf.losses`, or None if TensorFlow cannot add them up."""
    # A program may have put there what nothing ever adds up, such as a loss of each
    # example or None.
    with contextlib.suppress(AttributeError, TypeError, ValueError):
        total = tf.compat.v1.losses.get_total_loss(name="hookbridge_total_loss")
        return total if total.shape.rank in (0, None) else None
    return None


def known_loss(graph: Graph) -> Any:
    """Return the loss of a training graph that is there as one tensor, or None."""
    # In this order: the loss of the `EstimatorSpec`, the tensor behind a scalar summary
    # "loss", a tensor named "loss:0".
    spec = estimator_stack.training_spec(graph)
    if spec is not None:
        return spec.loss
    tagged = _loss_summaries(graph)
    if b"loss" in tagged:
        return tagged[b"loss"]
    named = _tensor_loss(graph)
    if len(tagged) == 1:
        # A tag has a number if its name was taken. The tensor may be the loss, or only
        # one term of it: then the tensor "loss:0" depends on it.
        (only,) = tagged.values()
        if named is None or only.op not in graph_ops.ancestors([named.op]):
            return only
    return named


def _loss_summaries(graph: Graph) -> dict[bytes, Any]:
    """Return `{tag: tensor}` of the scalar summaries "loss", "loss_1" and so on."""
    # A tag is the name of its op, which gets a number if the name is taken.
    tensors: dict[bytes, Any] = {}
    for op in collected.operations(graph, tf.compat.v1.GraphKeys.SUMMARIES):
        if op.type == "ScalarSummary":
            tag = graph_ops.constant_value(op.inputs[0])
            if tag is not None and re.fullmatch(rb"loss(_\d+)?", tag.item()):
                tensors.setdefault(tag.item(), op.inputs[1])
    return tensors


def _tensor_loss(graph: Graph) -> Any:
    try:
        tensor = graph.get_tensor_by_name("loss:0")
    except (KeyError, ValueError):
        return None
    usable = tensor.dtype.is_floating and tensor.shape.rank in (0, None)
    return graph_ops.fetchable(tensor) if usable else None


def find_metric(name: str, graph: Graph) -> LogSource | None:
    """Return a `tf.compat.v1.metrics` metric by its scope, or None."""
    # The functions of that module name their outputs `<name>/value` and
    # `<name>/update_op`.
    try:
        update = graph.get_tensor_by_name(f"{name}/update_op:0")
        value = graph.get_tensor_by_name(f"{name}/value:0")
    except (KeyError, ValueError):
        return None
    return streaming_source(name, value, update, graph)


def find_sources(
    logs: Mapping[str, Any], wanted: Iterable[str], graph: Graph
) -> list[LogSource]:
    """Return all entries in Keras's order: the loss first, then the metrics as named.

    Args:
      logs: the user's `{key of logs: tensor or its name}`.
      wanted: metrics that callbacks monitor; those that `logs` does not have are found
        by name.
      graph: the graph that trains.
    """
    specs = {"loss": None, **logs}
    if specs["loss"] is None:
        specs["loss"] = find_loss(graph)
    if specs["loss"] is None:
        del specs["loss"]
    sources = {key: resolve(key, spec, graph) for key, spec in specs.items()}
    for name in wanted:
        if name not in sources and (metric := find_metric(name, graph)) is not None:
            sources[name] = metric
    return list(sources.values())


class MetricValues:
    """The variables of streaming metrics of a graph that may still grow."""

    def __init__(self, resets: Sequence[Any]) -> None:
        self._resets = list(dict.fromkeys(resets))
        self._reads: dict[str, Any] = {}
        self._writes: dict[str, Any] = {}
        for op in self._resets:
            if op.type not in ("AssignVariableOp", "Assign"):
                continue
            read = variable = op.inputs[0]
            if op.type == "AssignVariableOp":
                options = {"dtype": op.get_attr("dtype"), "name": "hookbridge/read"}
                read = tf.raw_ops.ReadVariableOp(resource=variable, **options)
            self._reads[variable.op.name] = read
            self._writes[variable.op.name] = op

    def __bool__(self) -> bool:
        return bool(self._resets)

    def read(self, session: Session) -> dict[str, Any]:
        """Return the values of the variables, by name."""
        if not self._reads:
            return {}
        return {n: np.array(v) for n, v in session.run(self._reads).items()}

    def write(self, session: Session, values: Mapping[str, Any]) -> None:
        """Set metrics to what `read` returned; reset those without a value."""
        session.run(self._resets)
        for name in self._writes.keys() & values.keys():
            op, value = self._writes[name], np.asarray(values[name])
            source = op.inputs[1]
            if value.dtype == source.dtype.as_numpy_dtype and (
                source.shape.is_compatible_with(value.shape)
            ):
                # Feeding the initializer needs no new op: the graph is finalized.
                session.run(op, {source: value})
