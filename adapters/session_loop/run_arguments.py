"""What the runs of a training session fetch for callbacks, and feed for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hookbridge.adapters.live_model.rates import LiveRates
from hookbridge.adapters.session_graph.learning_rate import LearningRate
from hookbridge.adapters.session_graph.steps import ReachedOps
from hookbridge.adapters.session_loop.fed_rates import FedRates
from hookbridge.adapters.session_loop.step_reader import CountedSteps, StepReader
from hookbridge.ground.protocols import RunContext, Session


class RunArguments:
    """The `SessionRunArgs` of each run: `StepReader` fetches, `FedRates` feeds.

    Args:
      reader: what reads the steps.
      live: the rates that callbacks see.
      rates: the same rates, in the graph.
    """

    def __init__(
        self, reader: StepReader, live: LiveRates, rates: Sequence[LearningRate]
    ) -> None:
        self._reader = reader
        self._fed = FedRates(live, rates)
        self._counted: CountedSteps | None = None  # None if callbacks want batches

    def join(self, session: Session) -> None:
        """Feeds the rates of a session, in the place of the call that did so before."""
        self._fed.join(session)

    def count_only(self) -> None:
        """No callback wants the batches of a step."""
        self._counted = CountedSteps(self._reader.counter)

    def repeats(self, step: ReachedOps) -> bool:
        """Whether a step that follows another has the same arguments as that one."""
        counted = self._counted
        # Rates are fed anew in each step, and their feeds are checked.
        return counted is not None and counted.has_next(step) and not self._fed.values

    @property
    def again(self) -> Any:
        """The arguments of a step that `repeats`."""
        return None if self._counted is None else self._counted.arguments

    def of_step(self, step: ReachedOps, feed_dict: Mapping[Any, Any] | None) -> Any:
        """The arguments of a step, which begins."""
        arguments = self._reader.begin(step, feed_dict)
        if self._counted is not None:
            is_same = self._reader.is_same_again(step)
            self._counted.note(step, arguments, is_same=is_same)
        return self._fed.added_to(arguments, step, feed_dict)

    def of_update(self, update: ReachedOps, feed_dict: Mapping[Any, Any] | None) -> Any:
        """The arguments of an update without a step, which begins."""
        arguments = self._reader.begin_update(update, feed_dict)
        return self._fed.added_to(arguments, update, feed_dict)

    def without_events(self, reached: ReachedOps, run_context: RunContext) -> Any:
        """The arguments of a run that updates variables and has no events."""
        return self._fed.without_events(reached, run_context)

    def note_feeds(self, run_context: RunContext) -> None:
        """Notes what the loop itself feeds for the one rate in a run."""
        if self._fed.of_loop is not None:
            self._fed.note(run_context)

    def check(self) -> None:
        """Refuses, at the end of an epoch, a rate that was set and never read."""
        self._fed.check()
