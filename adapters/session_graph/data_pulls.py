"""Entries of `logs` that would take data which the step does not take.

A session runs what its fetches need. A tensor that depends on a `get_next()` of its own
takes a batch from the iterator whenever it is fetched. Either the training never sees
that batch, or the entry has its own data, which may end before the training's. A
placeholder that the step does not need may not be fed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hookbridge import errors
from hookbridge.adapters.session_graph import graph_ops
from hookbridge.adapters.session_graph.log_sources import LogSource
from hookbridge.adapters.session_graph.steps import ReachedOps
from hookbridge.ground.protocols import Graph, Operation
from hookbridge.ground.structures import flat_feeds

# Ops that have an iterator's handle as input and take no data from it.
_HARMLESS = (
    "MakeIterator",
    "IteratorToStringHandle",
    "IteratorGetDevice",
    "SerializeIterator",
    "DeserializeIterator",
    "DeleteIterator",
)
_PLACEHOLDER = "Placeholder"
_DEQUEUES = ("QueueDequeue", "ReaderRead", "Unstage", "OrderedMapUnstage")


class DataPulls:
    """What the entries of `logs` take from iterators, queues and feeds."""

    def __init__(
        self,
        sources: Iterable[LogSource],
        trained: Iterable[Any],
        *,
        idle_steps: bool = False,
    ) -> None:
        self._idle_steps = idle_steps  # an eval step may only count
        self._needs = {
            s.key: frozenset(filter(_is_data, graph_ops.ancestors([s.tensor.op])))
            for s in sources
        }
        if any(self._needs.values()):
            self._trained = graph_ops.ancestors(trained)

    def taken_by(self, source: LogSource, ops: Iterable[Any]) -> bool:
        """Return whether running `ops` takes all the data of an entry."""
        needs = self._needs[source.key]
        return not needs or needs <= graph_ops.ancestors(ops)

    def placeholders_beside(self, reached: ReachedOps) -> frozenset[Any]:
        """Return the placeholders of entries that a run need not feed, but may feed."""
        needs = frozenset[Any]().union(*self._needs.values()) - reached.ops
        return frozenset(op for op in needs if op.type == _PLACEHOLDER)

    def fetched_in(
        self, source: LogSource, update: ReachedOps, fed: frozenset[Any]
    ) -> bool:
        """Return whether a run takes the data of an entry, or feeds it."""
        return self._needs[source.key] - fed <= update.ops

    def fetched_with(
        self, source: LogSource, step: ReachedOps, fed: frozenset[Any] = frozenset()
    ) -> bool:
        """Return whether a step can fetch an entry.

        If not, the entry belongs to another kind of run: for example, a step of the
        generator does not fetch an entry of the discriminator.

        Args:
          source: the entry of the logs.
          step: the ops that the step runs.
          fed: the placeholders that it feeds.

        Raises:
          errors.RefusedError: the entry needs an op that no training run reaches.
        """
        extra = self._needs[source.key] - step.ops - fed
        if self._idle_steps and extra and not any(map(_pulls, step.ops)):
            extra = frozenset(op for op in extra if op.type == _PLACEHOLDER)
        if extra and not extra <= self._trained:
            strange = extra - self._trained
            _refuse(source, min(strange, key=lambda op: str(op.name)))
        return not extra


def _refuse(source: LogSource, op: Operation) -> None:
    """Refuse an entry that needs `op`, which no training run reaches."""
    entry = f'`logs["{source.key}"]` ("{source.tensor.name}")'
    if op.type == _PLACEHOLDER:
        raise errors.RefusedError(
            f"{entry} cannot be fetched with the training step: it needs the "
            f'placeholder "{op.name}", which the step does not need and the run does '
            f'not feed. Feed "{op.name}" in each run of the train op, or compute the '
            "entry from tensors that the step uses. Metrics of other data belong in "
            "`as_hooks(..., validation=...)`.",
            see="logs in a session",
        )
    raise errors.RefusedError(
        f'{entry} cannot be fetched with the training step: it needs "{op.name}" '
        f"({op.type}), which the step does not run. Each step would take an extra "
        "batch from that iterator or queue, and the training would end when it runs "
        "out. Instead, call `get_next()` once and compute the entry from the same "
        "batch as the loss, or fetch it in the loop together with the train op; "
        "metrics of other data belong in `as_hooks(..., validation=...)`.",
        see="logs in a session",
    )


def fed_placeholders(
    graph: Graph, feed_dict: Mapping[Any, Any] | None
) -> frozenset[Any]:
    """Return the ops of the placeholders that a loop feeds in a run.

    Args:
      graph: the graph of the session.
      feed_dict: the `feed_dict` of the run; None feeds nothing.
    """
    ops = {
        graph.as_graph_element(part, allow_operation=False).op
        for key, _ in flat_feeds(feed_dict)
        for part in graph_ops.parts(key)
    }
    return frozenset(op for op in ops if op.type == _PLACEHOLDER)


def _is_data(op: Operation) -> bool:
    """Return whether an op takes data from an iterator or a queue, or has to be fed."""
    return op.type == _PLACEHOLDER or _pulls(op)


def _pulls(op: Operation) -> bool:
    """Return whether an op takes data.

    A call that is given an iterator counts as such.
    """
    if op.type.startswith(_DEQUEUES):
        return True
    if op.type in _HARMLESS or op.type in graph_ops.PASSES:
        return False
    return any(
        t.dtype == "resource" and "Iterator" in graph_ops.source_op(t).type
        for t in op.inputs
    )
