"""Entries of `logs` that would take data which the step does not take.

A session runs what its fetches need. A tensor that depends on a `get_next()` of its own
takes a batch from the iterator whenever it is fetched. Either the training never sees
that batch, or the entry has its own data, which may end before the training's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hookbridge import errors
from hookbridge.adapters.session_graph import ops as graph_ops
from hookbridge.adapters.session_graph.logs import LogSource
from hookbridge.adapters.session_graph.steps import Step

# Ops that have an iterator's handle as input and take no data from it.
_HARMLESS = (
    "MakeIterator",
    "IteratorToStringHandle",
    "IteratorGetDevice",
    "SerializeIterator",
    "DeserializeIterator",
    "DeleteIterator",
)
_DEQUEUES = ("QueueDequeue", "ReaderRead", "Unstage", "OrderedMapUnstage")


class DataPulls:
    """What the entries of `logs` take from iterators and queues."""

    def __init__(
        self,
        sources: Iterable[LogSource],
        trained: Iterable[Any],
        *,
        idle_steps: bool = False,
    ) -> None:
        self._idle_steps = idle_steps  # an eval step may only count
        self._pulls = {
            s.key: frozenset(filter(_pulls, graph_ops.ancestors([s.tensor.op])))
            for s in sources
        }
        if any(self._pulls.values()):
            self._trained = graph_ops.ancestors(trained)

    def fetched_with(self, source: LogSource, step: Step) -> bool:
        """Whether a step can fetch an entry without taking data of its own."""
        # If not, the entry belongs to another kind of step: for example, a step of the
        # generator does not fetch an entry of the discriminator.
        extra = self._pulls[source.key] - step.ops
        if self._idle_steps and extra and not any(map(_pulls, step.ops)):
            return True
        if extra and not extra <= self._trained:
            op = min(extra, key=lambda op: str(op.name))
            raise errors.RefusedError(
                f'`logs["{source.key}"]` ("{source.tensor.name}") cannot be fetched '
                f'with the training step: it needs "{op.name}" ({op.type}), which '
                "the step does not run, so that each step would take a batch more "
                "from that iterator or queue, and its end would end the training. "
                "Instead, call `get_next()` once and compute the entry from the "
                "same batch as the loss, or fetch it in the loop together with the "
                "train op; metrics of other data belong into "
                "`as_hooks(..., validation=...)`.",
                see="logs in a session",
            )
        return not extra


def _pulls(op: Any) -> bool:
    """Whether an op takes data; a call that is given an iterator counts as such."""
    if op.type.startswith(_DEQUEUES):
        return True
    if op.type in _HARMLESS or op.type in graph_ops.PASSES:
        return False
    return any(
        t.dtype == "resource" and "Iterator" in graph_ops.source_op(t).type
        for t in op.inputs
    )
