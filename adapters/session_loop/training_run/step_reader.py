"""What the runs of a training session fetch for callbacks, and where its step is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hookbridge.adapters.session_graph.fetches import FetchPlan, StepFetch
from hookbridge.adapters.session_graph.log_sources import LogSource
from hookbridge.adapters.session_graph.step_counter import StepCounter
from hookbridge.adapters.session_graph.steps import ReachedOps, StepFinder
from hookbridge.ground.protocols import RunContext


class StepReader:
    """Reads the training steps of one run, and the updates between them."""

    def __init__(
        self, counter: Any, sources: Sequence[LogSource], steps: StepFinder
    ) -> None:
        self.kind_of = steps.kind_of  # what a run of certain fetches is
        self.counter: StepCounter = StepCounter(counter, steps)
        self._plan = FetchPlan(counter, sources, steps)
        self.fetch: StepFetch  # what the last step fetched, and its values
        # By how much the step moves the global step; None if it has to be read.
        self._adds: int | None = None

    @property
    def is_counted(self) -> bool:
        """Return whether the global step after the last step was computed, not read."""
        return self._adds is not None

    def is_same_again(self, step: ReachedOps) -> bool:
        """Return whether the next step of this kind fetches and adds the same."""
        return bool(self._adds) and self._plan.is_fixed(step)

    def begin(self, step: ReachedOps, feed_dict: Mapping[Any, Any] | None) -> Any:
        """Begin a step; return what it fetches, as `SessionRunArgs`."""
        self.fetch, self._adds = self._plan.fetch_of(step, self.counter, feed_dict)
        return self.fetch.arguments

    def step_after(self, before: int, results: object, run_context: RunContext) -> int:
        """Return the global step at the end of the step."""
        counter = self.counter
        if self._adds is not None and not counter.stale:
            return before + self._adds
        return counter.after(before, self.fetch.count(results), run_context)

    def begin_update(
        self, update: ReachedOps, feed_dict: Mapping[Any, Any] | None
    ) -> Any:
        """Begin an update without a step; return what it fetches."""
        self._between: StepFetch = self._plan.fetch_between(update, feed_dict)
        return self._between.arguments

    def update_values(self, results: object) -> dict[str, Any]:
        """Return the values of the entries of `logs` that the update has fetched."""
        return self._between.unpack(results)
