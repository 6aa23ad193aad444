"""What a recorder fetches from a step of a session, found in the graph."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import tensorflow as tf
from absl import logging

from hookbridge.adapters.session_graph import (
    estimator_stack,
    graph_ops,
    graph_optimizers,
    learning_rate,
    log_sources,
    session_variables,
)
from hookbridge.adapters.session_graph.steps import StepFinder
from hookbridge.ground import collected
from hookbridge.ground.protocols import Graph, Operation, RunContext, Tensor
from hookbridge.ground.structures import flat_feeds
from hookbridge.ground.walks import reached
from hookbridge.reference.record import graph_gradients, graph_states
from hookbridge.reference.record.graph_variations import GraphCopy, recorded_variations
from hookbridge.reference.recordings.measures import finite
from hookbridge.reference.recordings.recording_files import (
    CHANGES_GRADIENTS,
    VARIATIONS,
    Recording,
)

v1 = tf.compat.v1

# Ops that hand out a batch.
_SOURCES = ("IteratorGetNext", "QueueDequeue", "ReaderRead", "Unstage")
_DECODERS = ("DeserializeSparse", "RaggedTensorFromVariant")
_RANDOM = re.compile(r"Random|Multinomial|Dropout")


class SessionFetches:
    """What is fetched from the steps of one training graph.

    Nothing is added to the graph: seeds of later ops depend on how many it has.
    """

    fetches_on = False  # whether the fetches stay after the last recorded step

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._loss = log_sources.known_loss(graph)
        self._names = estimator_stack.input_names()
        self._steps: StepFinder | None = None
        self._fetches: dict[Any, dict[str, Any]] = {}
        self._kept: list[Any] = []
        self._ops: frozenset[Any] = frozenset()  # those of all steps up to now

    def variables(self) -> Iterator[tuple[str, str, Any]]:
        """Yield `(name, kind, variable)` of all that a checkpoint would hold."""
        graph = self._graph
        trainable, moving = session_variables.model_variables(graph)
        counter = collected.global_step(graph)
        rates = [r.variable for r in learning_rate.find(graph)]
        known = [*trainable, *moving, counter, *rates]
        known = [variable for variable in known if variable is not None]
        moving += graph_states.updated_variables(graph, self._step_ops(), known)
        kinds = {id(v): "weight" for v in trainable} | {id(v): "state" for v in moving}
        kinds[id(counter)] = "counter"
        saved = session_variables.saved_variables(graph)
        for variable in session_variables.unique([*trainable, *moving, *saved]):
            yield variable.op.name, kinds.get(id(variable), "other"), variable

    def _step_ops(self) -> frozenset[Any]:
        """Return the ops of the steps up to now, and what moves the step in others."""
        steps = self._steps
        movers = [] if steps is None else [*steps.movers, *steps.pushes, *steps.applies]
        return self._ops | graph_ops.ancestors(movers)

    def facts(self) -> dict[str, Any]:
        """Return what `recording.json` says of the graph."""
        rates = learning_rate.find(self._graph)
        return {
            "host": "session",
            "seeds": {"graph": self._graph.seed},
            "optimizer": [_optimizer(rate) for rate in rates],
            CHANGES_GRADIENTS: any(map(_changes_gradients, self._fetches.values())),
        }

    def fetches(self, run_context: RunContext) -> dict[str, Any] | None:
        """Return more fetches of a run; None unless it is a training step."""
        if self._steps is None:
            counter = collected.global_step(self._graph)
            self._steps = StepFinder(self._graph, counter)
        original = run_context.original_args.fetches
        step = self._steps.kind_of(original).step
        if step is None:
            return None
        fed = frozenset(
            tensor.name
            for fed_key, _ in flat_feeds(run_context.original_args.feed_dict)
            for part in graph_ops.parts(fed_key)
            for tensor in [self._graph.as_graph_element(part)]
            if not tensor.op.type.startswith("Placeholder")
        )
        key = id(step), fed
        if key not in self._fetches:
            self._kept.append(step)  # its id is not used again
            ops = self._steps.operations(original)
            needed = _needed_ops(ops, fed)
            self._ops |= needed
            self._fetches[key] = self._fetches_of_step(needed, fed, original)
        return self._fetches[key]

    def _fetches_of_step(
        self, ops: Any, fed: Collection[str], original: Any
    ) -> dict[str, Any]:
        """Return the tensors of one kind of step, by what they are."""
        fetches: dict[str, Any] = {"batch": dict(self._batch(ops, fed))}
        trainable, _ = session_variables.model_variables(self._graph)
        applied = graph_gradients.applied_gradients(ops)
        computed = graph_gradients.computed_gradients(ops, applied, trainable)
        fetches["applied"] = _fetchable(applied)
        # A branch or a loop may keep a gradient to itself before it is clipped.
        fetches["gradients"] = {
            **{n: parts for n, parts in fetches["applied"].items() if n in computed},
            **_fetchable(computed),
        }
        loss = self._loss_of(ops)
        if loss is not None:
            fetches["loss"] = loss
        rate = self._rate_of(ops)
        if rate is not None:
            fetches["learning_rate"] = rate
        numbers = self._fetched_numbers(original)
        fetches["metrics"] = {n: t for n, t in numbers.items() if t is not loss}
        return fetches

    def _rate_of(self, ops: Any) -> Any:
        """Return the learning rate of a step; None unless there is exactly one."""
        rates = learning_rate.find(self._graph)
        rates = [r for r in rates if r.update is None or r.update in ops]
        return graph_ops.fetchable(rates[0].tensor) if len(rates) == 1 else None

    def _fetched_numbers(self, original: Any) -> dict[str, Any]:
        """Return the floating numbers that the program itself fetches, by name."""
        return {
            tensor.name.removesuffix(":0"): tensor
            for leaf in graph_ops.leaves(original)
            for part in graph_ops.parts(leaf)
            for tensor in [self._graph.as_graph_element(part)]
            if isinstance(tensor, tf.Tensor)
            and tensor.shape.rank == 0
            and tensor.dtype.base_dtype.is_floating
        }

    def variations(self, folder: str) -> dict[str, Any]:
        """Return what the first step would give with known mistakes of porting.

        It helps to name a cause. What cannot be computed is left out.
        """
        recording = Recording(folder)
        fetches = next(iter(self._fetches.values()), {})
        if not recording.steps or "loss" not in fetches:
            return {}
        first = recording.steps[0]
        kinds = ("weight", "state", "other")
        names = recording.shapes(*kinds)
        weights = {n: v for n, v in recording.initial.items() if n in names}
        try:
            copy = GraphCopy(self._graph, fetches, first.arrays("batch"), weights)
            return {VARIATIONS: list(recorded_variations(copy, finite(first.loss)))}
        except (tf.errors.OpError, ValueError, TypeError, KeyError) as e:
            logging.info(
                "hb.recorder: `compare` will not name causes in layers, because a copy "
                "of the graph did not run: %s",
                e,
            )
            return {}

    def random_ops(self, fetches: Mapping[str, Any]) -> list[str]:
        """Return the ops that draw random numbers in what computes a loss."""
        ops = graph_ops.ancestors([fetches["loss"].op] if "loss" in fetches else [])
        return sorted(op.name for op in ops if _RANDOM.search(op.type))

    def _batch(self, ops: Any, fed: Collection[str]) -> Iterator[tuple[str, Any]]:
        """Yield the tensors of a step's batch: what is fed, and what sources give."""
        tensors = [self._graph.get_tensor_by_name(name) for name in sorted(fed)]
        for op in sorted(ops, key=lambda op: str(op.name)):
            # One in a branch of a conditional may have no value.
            is_fed = op.type.startswith("Placeholder") and not op.control_inputs
            # A data set's sparse and ragged values are decoded by other ops.
            if is_fed or op.type.startswith(_SOURCES) or op.type in _DECODERS:
                tensors += op.outputs
        for tensor in tensors:
            is_value = tensor.dtype.base_dtype not in (tf.resource, tf.variant)
            if is_value and self._graph.is_fetchable(tensor):
                name = tensor.name.removesuffix(":0")
                yield self._names.get(tensor.name, name), tensor

    def _loss_of(self, ops: Any) -> Any:
        """Return the number whose gradients a step computes.

        Else what the graph calls so.
        """
        known, trained = self._loss, _trained_loss(self._graph, ops)
        trained = None if trained is None else graph_ops.fetchable(trained)
        if known is None or not _is_computed(known, ops):
            return trained
        # It may be scaled, for float16 or for replicas.
        is_scaled = trained is not None and trained.op.type in ("Mul", "RealDiv")
        if trained is None or (
            is_scaled and known.name in [t.name for t in trained.op.inputs]
        ):
            return known
        return trained


def _fetchable(gradients: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the gradients of which a session can fetch each part."""
    values = {n: list(map(graph_ops.fetchable, p)) for n, p in gradients.items()}
    return {n: p for n, p in values.items() if all(part is not None for part in p)}


def _changes_gradients(fetches: Mapping[str, Any]) -> bool:
    """Return whether a step clips or scales a gradient before it applies it."""
    applied, computed = fetches["applied"], fetches["gradients"]
    names = applied.keys() & computed.keys()
    return any(applied[n][0].name != computed[n][0].name for n in names)


def _needed_ops(ops: Iterable[Any], fed: Collection[str]) -> frozenset[Any]:
    """Return the ops that have to run for others, where some tensors are fed."""
    return reached(
        ops,
        lambda op: [t.op for t in op.inputs if t.name not in fed] + op.control_inputs,
    )


def _trained_loss(graph: Graph, ops: Any) -> Any:
    """Return the only number whose gradients a step computes, or None.

    `tf.gradients` begins with ones, and names what it makes of them by the loss.
    """
    sources = set()
    for op in ops:
        if op.name.rpartition("/")[2].startswith("grad_ys_"):
            scope = op.name.rpartition("/")[0]
            for user in op.outputs[0].consumers():
                name = user.name.removeprefix(f"{scope}/").partition("_grad/")[0]
                with contextlib.suppress(KeyError, ValueError):
                    source = graph.get_operation_by_name(name)
                    sources |= {tensor.ref() for tensor in _numbers(source, user)}
    losses = [ref.deref() for ref in sources]
    return losses[0] if len(losses) == 1 else None


def _numbers(op: Operation, gradient: Any) -> list[Any]:
    """Return the outputs of an op that can be the loss of a gradient's op.

    A loop has its counter among them, and a function what its gradient takes.
    """
    if len(op.outputs) == 1:
        return list(op.outputs)
    taken = {tensor.name for tensor in gradient.inputs}
    real = [t for t in op.outputs if t.dtype.base_dtype.is_floating]
    real = [t for t in real if t.name not in taken]
    return [t for t in real if t.shape.rank == 0] or real


def _is_computed(tensor: Tensor, ops: Any) -> bool:
    """Return whether a step can fetch a tensor without a change of what it does."""
    more = graph_ops.ancestors([tensor.op]) - ops
    reads = ("ReadVariableOp", "VarHandleOp", "VariableV2")
    return not any(op.op_def.is_stateful and op.type not in reads for op in more)


def _optimizer(rate: Any) -> dict[str, Any]:
    """Return the class and the constant hyperparameters of an optimizer."""
    described = graph_optimizers.optimizer_of(rate)
    numbers = {
        name: float(value.default)
        for name, value in described.hyperparameters.items()
        if value.default is not None
    }
    return {"class": described.class_name, **numbers}
