"""What a training step fetches for all callbacks together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge.adapters.session_graph.data_pulls import DataPulls
from hookbridge.adapters.session_graph.logs import LogSource
from hookbridge.adapters.session_graph.step_counter import StepCounter
from hookbridge.adapters.session_graph.steps import Step, StepGraph
from hookbridge.ground.structures import RecentlyUsed


class StepFetch:
    """The fetches of one kind of step, and how their results are read."""

    def __init__(
        self,
        numbers: Sequence[str],
        vector: Any,
        counted: bool,
        others: Sequence[LogSource],
    ) -> None:
        self._numbers = list(numbers)
        self._counted = counted
        self._others = [s.key for s in others]
        tensors = [] if vector is None else [vector]
        self.arguments = tf.compat.v1.train.SessionRunArgs(
            [*tensors, *(s.tensor for s in others)]
        )

    def count(self, results: Any) -> int | None:
        """The counter after the step, or None if the step did not fetch it."""
        return int(results[0][-1]) if self._counted else None

    def unpack(self, results: Any) -> dict[str, Any]:
        """The fetched values of the entries of `logs`."""
        first = len(results) - len(self._others)
        numbers = np.asarray(results[:first], np.float64).ravel().tolist()
        # The counter is the last number and has no key.
        values = dict(zip(self._numbers, numbers, strict=False))
        values.update(zip(self._others, results[first:], strict=True))
        return values


class FetchPlan:
    """Makes the fetches of training steps.

    Several numbers are fetched as one vector of float64, which holds every float32 and
    every step below 2**53 exactly: it costs one fetch, however many callbacks share it.
    A single number is fetched as it is: most loops fetch their loss anyway, and a
    session fetches a tensor once.
    """

    def __init__(
        self, counter: Any, sources: Sequence[LogSource], steps: StepGraph
    ) -> None:
        self._pulls = DataPulls(sources, [*steps.movers, *steps.pushes, *steps.applies])
        tails = steps.tails() if counter is not None else []

        self._scalars = [s for s in sources if s.scalar]
        self._others = [s for s in sources if not s.scalar]
        self._vectors: dict[Any, Any] = {}
        self._plain: Any = None
        self._fetches = RecentlyUsed()
        with tf.name_scope("hookbridge"):
            numbers = [tf.cast(s.tensor, tf.float64) for s in self._scalars]
            for tail in tails:
                with tf.control_dependencies([tail]):
                    step = tf.cast(counter.read_value(), tf.float64)
                self._vectors[tail] = tf.stack([*numbers, step])
            if len(numbers) == 1:
                self._plain = self._scalars[0].tensor
            elif numbers:
                self._plain = tf.stack(numbers)

    def fetch_of(
        self, step: Step, counter: StepCounter
    ) -> tuple[StepFetch, int | None]:
        """What a step fetches, and how far it moves the counter (None if unknown)."""
        entry: tuple[StepFetch, int | None] | None = self._fetches.get(step)
        if entry is None or (entry[1] is not None and not counter.exact):
            adds = counter.adds(step)
            entry = self._make(step, adds is None), adds
            self._fetches.add(step, entry)
        return entry

    def _make(self, step: Step, counted: bool) -> StepFetch:
        scalars = [s for s in self._scalars if self._pulls.fetched_with(s, step)]
        others = [s for s in self._others if self._pulls.fetched_with(s, step)]
        keys = [s.key for s in scalars]
        if len(scalars) < len(self._scalars):
            # The vectors hold all numbers, and this step must not fetch all of them.
            return StepFetch([], None, False, [*scalars, *others])
        vector = self._vectors.get(step.tail) if counted else None
        if vector is None:
            return StepFetch(keys, self._plain, False, others)
        return StepFetch(keys, vector, True, others)
