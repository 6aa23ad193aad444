"""What a training step fetches for all callbacks together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge.adapters.session_graph.data_pulls import DataPulls, fed_placeholders
from hookbridge.adapters.session_graph.log_sources import SIZE, LogSource
from hookbridge.adapters.session_graph.step_counter import StepCounter
from hookbridge.adapters.session_graph.steps import ReachedOps, StepFinder
from hookbridge.ground.structures import RecentlyUsed


class StepFetch:
    """The fetches of one kind of step, and how their results are read."""

    def __init__(
        self,
        others: Sequence[LogSource],
        *,
        numbers: Sequence[str] = (),
        vector: object = None,
        reads_counter: bool = False,
    ) -> None:
        self._numbers = list(numbers)
        self._reads_counter = reads_counter
        self._others = [s.key for s in others]
        tensors = [] if vector is None else [vector]
        self.arguments: Any = tf.compat.v1.train.SessionRunArgs(
            [*tensors, *(s.tensor for s in others)]
        )

    def count(self, results: Any) -> int | None:
        """Return the counter after the step, or None if the step did not fetch it."""
        return int(results[0][-1]) if self._reads_counter else None

    def unpack(self, results: Any) -> dict[str, Any]:
        """Return the fetched values of the entries of `logs`."""
        first = len(results) - len(self._others)
        numbers = np.asarray(results[:first], np.float64).ravel().tolist()
        # The counter is the last number and has no key.
        values = dict(zip(self._numbers, numbers, strict=False))
        values.update(zip(self._others, results[first:], strict=True))
        return values


_NOTHING = StepFetch(())


class FetchPlan:
    """Makes the fetches of training steps.

    Several numbers are fetched as one vector of float64, which holds every float32 and
    every step below 2**53 exactly: it costs one fetch, however many callbacks share it.
    A single number is fetched as it is: most loops fetch their loss anyway, and a
    session fetches a tensor once.
    """

    def __init__(
        self, counter: object, sources: Sequence[LogSource], steps: StepFinder
    ) -> None:
        movers = [*steps.movers, *steps.pushes]
        self._pulls = DataPulls(sources, [*movers, *steps.updates])
        # Entries whose data the op that moves the step does not take. An update that
        # takes it may be a run without a step.
        self._between = self._unavailable_in(movers or steps.applies, sources)
        self._graph = steps.graph
        self._scalars = [s for s in sources if s.scalar]
        self._others = [s for s in sources if not s.scalar]
        # The op at the end of a step -> the numbers and the counter after it.
        self._vectors: dict[Any, Any] = {}
        self._plain: Any = None  # the numbers alone
        self._of_steps = RecentlyUsed()
        self._of_updates = RecentlyUsed()
        self._beside = RecentlyUsed()
        with tf.name_scope("hookbridge"):
            self._add_vectors(counter, steps)

    def _add_vectors(self, counter: Any, steps: StepFinder) -> None:
        """Add the tensors that hold several numbers to the graph."""
        numbers = [tf.cast(s.tensor, tf.float64) for s in self._scalars]
        tails = steps.tails() if counter is not None else ()
        for tail in tails:
            with tf.control_dependencies([tail]):
                step = tf.cast(counter.read_value(), tf.float64)
            self._vectors[tail] = tf.stack([*numbers, step])
        if len(numbers) == 1:
            self._plain = self._scalars[0].tensor
        elif numbers:
            self._plain = tf.stack(numbers)

    def _unavailable_in(
        self, ops: Sequence[Any], sources: Sequence[LogSource]
    ) -> list[LogSource]:
        """Return the entries whose data no op takes.

        The size of the batch is among them if there is any other.
        """
        not_taken = [s for s in sources if not self._pulls.taken_by(s, ops)]
        if not_taken:
            not_taken += [s for s in sources if s.key == SIZE and s not in not_taken]
        return not_taken

    def fetch_of(
        self,
        step: ReachedOps,
        counter: StepCounter,
        feed_dict: Mapping[Any, Any] | None,
    ) -> tuple[StepFetch, int | None]:
        """Return what a step fetches, and how far it moves the counter, if known.

        Args:
          step: the ops that the loop's own fetches run.
          counter: the global step of the session.
          feed_dict: what the loop feeds.
        """
        fed = self._extra_feeds(step, feed_dict)
        entry: tuple[StepFetch, int | None] | None = self._of_steps.get((step, fed))
        if entry is None or (entry[1] is not None and not counter.is_counted):
            adds = step.adds if counter.is_counted else None
            entry = self._make(step, adds is None, fed), adds
            self._of_steps.add((step, fed), entry)
        return entry

    def is_fixed(self, step: ReachedOps) -> bool:
        """Return whether a step fetches the same whatever its run feeds."""
        return not self._beside.get(step)

    def fetch_between(
        self, update: ReachedOps, feed_dict: Mapping[Any, Any] | None
    ) -> StepFetch:
        """Return what an update without a step fetches, which may be nothing.

        Args:
          update: the ops that the loop's own fetches run.
          feed_dict: what the loop feeds.
        """
        if not self._between:
            return _NOTHING
        fed = self._extra_feeds(update, feed_dict)
        fetch: StepFetch | None = self._of_updates.get((update, fed))
        if fetch is None:
            sources = [
                s for s in self._between if self._pulls.fetched_in(s, update, fed)
            ]
            has_any = any(s.key != SIZE for s in sources)
            fetch = StepFetch(sources if has_any else [])
            self._of_updates.add((update, fed), fetch)
        return fetch

    def _extra_feeds(
        self, reached: ReachedOps, feed_dict: Mapping[Any, Any] | None
    ) -> frozenset[Any]:
        """Return the placeholders that a run feeds for entries alone."""
        placeholders: frozenset[Any] | None = self._beside.get(reached)
        if placeholders is None:
            placeholders = self._pulls.placeholders_beside(reached)
            self._beside.add(reached, placeholders)
        if not placeholders:
            return placeholders
        return placeholders & fed_placeholders(self._graph, feed_dict)

    def _make(
        self, step: ReachedOps, reads_counter: bool, fed: frozenset[Any]
    ) -> StepFetch:
        """Return the fetches of a step: a vector of numbers, the counter if read."""
        scalars = [s for s in self._scalars if self._pulls.fetched_with(s, step, fed)]
        whole = [s for s in self._others if self._pulls.fetched_with(s, step, fed)]
        keys = [s.key for s in scalars]
        if len(scalars) < len(self._scalars):
            # The vectors hold all numbers, and this step must not fetch all of them.
            return StepFetch([*scalars, *whole])
        vector = self._vectors.get(step.tail) if reads_counter else None
        if vector is None:
            return StepFetch(whole, numbers=keys, vector=self._plain)
        return StepFetch(whole, numbers=keys, vector=vector, reads_counter=True)
