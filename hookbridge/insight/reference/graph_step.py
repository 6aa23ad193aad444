"""What a recorder fetches from a step of a session, found in the graph."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from hookbridge.adapters.session_graph import (
    estimator_stack,
    graph_ops,
    graph_optimizers,
    learning_rate,
    log_sources,
    session_variables,
)
from hookbridge.adapters.session_graph import steps as graph_steps

v1 = tf.compat.v1

# Ops that hand out a batch, and the scopes of what computes gradients.
_SOURCES = ("IteratorGetNext", "QueueDequeue", "ReaderRead", "Unstage")
_GRADIENTS = re.compile(r"(^|/)(gradients|gradient_tape)(_\d+)?/")
_RANDOM = re.compile(r"Random|Multinomial|Dropout")


class GraphStep:
    """The steps of one training graph.

    Nothing is added to the graph, except the sum of the losses of `tf.losses` where
    that is the only loss.
    """

    fetches_on = False  # whether the fetches stay after the last recorded step

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._loss = log_sources.find_loss(graph)
        self._names = estimator_stack.input_names()
        self._steps: graph_steps.StepGraph | None = None
        self._fetches: dict[int, dict[str, Any]] = {}
        self._kept: list[Any] = []

    def variables(self) -> Iterator[tuple[str, str, Any]]:
        """`(name, kind, variable)` of all that a checkpoint would hold."""
        graph = self._graph
        trainable, moving = session_variables.model_variables(graph)
        kinds = {id(v): "weight" for v in trainable} | {id(v): "state" for v in moving}
        counter = v1.train.get_global_step(graph)
        kinds[id(counter)] = "counter"
        saved = session_variables.saved_variables(graph)
        for variable in session_variables.unique([*trainable, *moving, *saved]):
            yield variable.op.name, kinds.get(id(variable), "other"), variable

    def facts(self) -> dict[str, Any]:
        """What `recording.json` says of the graph."""
        rates = learning_rate.find(self._graph)
        return {
            "host": "session",
            "seeds": {"graph": self._graph.seed},
            "optimizer": [_optimizer(rate) for rate in rates],
        }

    def fetches(self, run_context: Any) -> dict[str, Any] | None:
        """The fetches beside those of a run; None if the run is no training step."""
        if self._steps is None:
            counter = v1.train.get_global_step(self._graph)
            self._steps = graph_steps.StepGraph(self._graph, counter)
        original = run_context.original_args.fetches
        step = self._steps.step_of(original)
        if step is None:
            return None
        if id(step) not in self._fetches:
            self._kept.append(step)  # its id is not used again
            self._fetches[id(step)] = self._of_step(step, original)
        return self._fetches[id(step)]

    def _of_step(self, step: Any, original: Any) -> dict[str, Any]:
        """The tensors of one kind of step, by what they are."""
        fetches: dict[str, Any] = {"batch": dict(self._batch(step))}
        applied = {
            name: tensors
            for op in step.ops
            if graph_ops.is_apply(op)
            for name, tensors in [_applied(op)]
            if tensors
        }
        fetches["applied"] = applied
        fetches["gradients"] = {
            name: [_before_clipping(tensors[0]), *tensors[1:]]
            for name, tensors in applied.items()
        }
        loss = self._loss
        if loss is None or not _is_computed(loss, step.ops):
            loss = _trained_loss(self._graph, step.ops)
        if loss is not None:
            fetches["loss"] = loss
        rates = learning_rate.find(self._graph)
        rates = [r for r in rates if r.update is None or r.update in step.ops]
        if len(rates) == 1:
            fetches["learning_rate"] = rates[0].tensor
        fetches["metrics"] = {
            tensor.name.removesuffix(":0"): tensor
            for leaf in graph_ops.leaves(original)
            for part in graph_ops.parts(leaf)
            for tensor in [self._graph.as_graph_element(part)]
            if isinstance(tensor, tf.Tensor)
            and tensor.shape.rank == 0
            and tensor.dtype.base_dtype.is_floating
            and tensor is not loss
        }
        return fetches

    def random_ops(self, fetches: Mapping[str, Any]) -> list[str]:
        """The ops that draw random numbers in what computes a loss."""
        ops = graph_ops.ancestors([fetches["loss"].op] if "loss" in fetches else [])
        return sorted(op.name for op in ops if _RANDOM.search(op.type))

    def _batch(self, step: Any) -> Iterator[tuple[str, Any]]:
        for op in sorted(step.ops, key=lambda op: str(op.name)):
            # One in a branch of a conditional may have no value.
            is_fed = op.type.startswith("Placeholder") and not op.control_inputs
            if not is_fed and not op.type.startswith(_SOURCES):
                continue
            for tensor in op.outputs:
                if tensor.dtype.base_dtype not in (tf.resource, tf.variant):
                    own = tensor.name.removesuffix(":0")
                    yield self._names.get(tensor.name, own), tensor


def _applied(op: Any) -> tuple[str, list[Any]]:
    """The variable of an update op, and its gradient; of rows, with their indices."""
    found = {}
    for argument, tensor in zip(op.op_def.input_arg, op.inputs, strict=False):
        found[argument.name] = tensor
    name = graph_ops.source_op(op.inputs[0]).name
    gradient = found.get("grad", found.get("delta"))
    if gradient is None:
        return name, []
    return name, [gradient, found["indices"]] if "indices" in found else [gradient]


def _before_clipping(tensor: Any) -> Any:
    """The gradient before it was clipped or decayed; itself if it cannot be found.

    Both keep the shape, so the way back goes through inputs of the same shape.
    """
    todo, visited = [tensor], set()
    while todo:
        each = todo.pop(0)
        if _GRADIENTS.search(each.op.name):
            return each
        visited.add(each.name)
        inputs = [t for t in each.op.inputs if t.dtype == each.dtype]
        same = [t for t in inputs if t.shape.as_list() == each.shape.as_list()]
        todo = [*(t for t in same if t.name not in visited), *todo]
    return tensor


def _trained_loss(graph: Any, ops: Any) -> Any:
    """The only number whose gradients a step computes, or None.

    `tf.gradients` begins with ones, and names what it makes of them by the loss.
    """
    found = set()
    for op in ops:
        if op.name.rpartition("/")[2].startswith("grad_ys_"):
            scope = op.name.rpartition("/")[0]
            for user in op.outputs[0].consumers():
                name = user.name.removeprefix(f"{scope}/").partition("_grad/")[0]
                with contextlib.suppress(KeyError, ValueError):
                    found.add(graph.get_tensor_by_name(f"{name}:0").ref())
    losses = [ref.deref() for ref in found]
    return losses[0] if len(losses) == 1 and losses[0].shape.rank == 0 else None


def _is_computed(tensor: Any, ops: Any) -> bool:
    """Whether a step can fetch a tensor without a change of what it does."""
    more = graph_ops.ancestors([tensor.op]) - ops
    reads = ("ReadVariableOp", "VarHandleOp", "VariableV2")
    return not any(op.op_def.is_stateful and op.type not in reads for op in more)


def _optimizer(rate: Any) -> dict[str, Any]:
    """The class and the constant hyperparameters of an optimizer."""
    found = graph_optimizers.optimizer_of(rate)
    numbers = {
        name: float(value.default)
        for name, value in found.hyperparameters.items()
        if value.default is not None
    }
    return {"class": found.class_name, **numbers}
