"""Which runs of a session are steps: reachability in the graph.

A run whose fetches reach an op that moves the counter (the global step of a
training graph, the eval step of an evaluation graph) is a step. Fetching data,
initializing an iterator or asking a queue for its size is not.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import tensorflow as tf

from hookbridge.adapters.session_graph import graph_ops, step_movers
from hookbridge.ground import collected
from hookbridge.ground.protocols import Graph, Operation
from hookbridge.ground.structures import (
    RecentlyUsed,
    UnknownStructureError,
    copy_structure,
    structure_key,
)

# Ops of `SyncReplicasOptimizer` that hand gradients over. The chief's queue runner then
# moves the step.
_PUSHES = ("AccumulatorApplyGradient", "ResourceAccumulatorApplyGradient")


@dataclasses.dataclass(eq=False, slots=True)
class ReachedOps:
    """The ops that a step, or an update without one, reaches: its kind.

    Runs with equal fetches share one object.
    """

    tail: Any  # after this op the counter has its new value
    ops: frozenset[Any]  # every op that the fetches need
    adds: int | None = None  # to the counter, if the graph alone tells it


class RunKind(NamedTuple):
    """What a run of certain fetches is."""

    step: ReachedOps | None  # a training step, or an eval step
    # An update without a step: for example, a GAN's run that trains the discriminator
    # where only the generator's run moves the counter.
    update: ReachedOps | None
    # Whether it may give the counter another value. A run that initializes or restores
    # variables may, though it is no step.
    writes: bool


class StepFinder:
    """Finds the steps among the runs on one graph; without a counter, the updates."""

    def __init__(self, graph: Graph, counter: object) -> None:
        self.graph = graph
        ops = graph.get_operations()
        self._writers: list[Any] = []
        self.movers: list[Any] = []
        if counter is not None:
            self._writers = step_movers.find_writers(graph, counter)
            self.movers = step_movers.find_movers(graph, counter, self._writers)
        self.pushes: list[Any] = [op for op in ops if op.type in _PUSHES]
        self.applies: list[Any] = [
            op for op in ops if graph_ops.is_apply(op) or graph_ops.updates_rows(op)
        ]
        self._tokens = [op for op in ops if step_movers.takes_token(op)]
        accumulations = step_movers.find_accumulations(graph, counter)
        self.updates: list[Any] = [*self.applies, *accumulations]
        self._known = RecentlyUsed()  # what runs are, by the keys of their fetches

    @property
    def trains(self) -> bool:
        """Return whether any run on this graph can be a step."""
        return bool(self.movers or self.pushes or self.applies)

    def kind_of(self, fetches: object) -> RunKind:
        """Return what a run of `fetches` is; the answer is remembered."""
        try:
            key = structure_key(fetches)
        except UnknownStructureError:
            key = tuple(map(id, graph_ops.leaves(fetches)))
        kind: RunKind | None = self._known.get(key)
        if kind is None:
            reached = graph_ops.ancestors(self.operations(fetches))
            writes = not reached.isdisjoint([*self._writers, *self.pushes])
            step = self._step(reached)
            updates = step is None and not reached.isdisjoint(self.updates)
            kind = RunKind(step, ReachedOps(None, reached) if updates else None, writes)
            # The objects whose ids are in the key, even if the structure changes.
            objects = copy_structure(fetches), list(graph_ops.leaves(fetches))
            self._known.add(key, kind, keep=objects)
        return kind

    def tails(self) -> list[Any]:
        """Return the ops after which a read of the counter can be ordered."""
        return [op for op in (*self.movers, *self._tokens) if self._unconditional(op)]

    def _step(self, reached: frozenset[Any]) -> ReachedOps | None:
        """Return the step that ops make, by what moves the counter, or None."""
        movers = [op for op in self.movers if op in reached]
        if movers:
            # With several movers it is not known which one runs last.
            is_known = len(movers) == 1 and self._unconditional(movers[0])
            tail = movers[0] if is_known else None
            return ReachedOps(tail, reached, self._adds(tail, reached))
        if not reached.isdisjoint(self.pushes):
            tokens = [op for op in self._tokens if op in reached]
            return ReachedOps(tokens[0] if tokens else None, reached)
        # Without any op that moves the counter, applying gradients is the step.
        if self.movers or self.pushes or reached.isdisjoint(self.applies):
            return None
        return ReachedOps(None, reached)

    def _adds(self, tail: object, reached: frozenset[Any]) -> int | None:
        # With pushes or tokens another thread of this process moves the step.
        if tail is None or self.pushes or self._tokens:
            return None
        if any(op in reached for op in self._writers if op is not tail):
            return None
        return step_movers.moves_by(tail)

    def operations(self, fetches: object) -> list[Any]:
        """Return the ops of `fetches`: tensors, ops, names, variables, structures."""
        elements = [
            self.graph.as_graph_element(part)
            for leaf in graph_ops.leaves(fetches)
            for part in graph_ops.parts(leaf)
        ]
        return [getattr(element, "op", element) for element in elements]

    def _unconditional(self, op: Operation) -> bool:
        # The runtime inlines functions: a read that waits for the call may come before
        # an assignment within it.
        if op.type in step_movers.CALLS:
            return False
        # Ops in a loop of TensorFlow 1 wait for a `Switch`, too.
        types = {ancestor.type for ancestor in graph_ops.ancestors([op])}
        return types.isdisjoint(("Switch", "RefSwitch"))


def steps_of(graph: Graph) -> StepFinder | None:
    """Return the steps of a graph that trains or evaluates; None if it does neither."""
    eval_step = collected.eval_step(graph)
    if eval_step is not None:
        return StepFinder(graph, eval_step)
    counter = collected.global_step(graph)
    if isinstance(counter, tf.distribute.DistributedValues):  # its copies move together
        counter = counter.distribute_strategy.experimental_local_results(counter)[0]
    steps = StepFinder(graph, counter)
    return steps if steps.trains else None
