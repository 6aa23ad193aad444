"""What the runs of a training session fetch for callbacks, and feed for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from hookbridge.adapters.live_model import rate_checks
from hookbridge.adapters.live_model.rates import LiveRates
from hookbridge.adapters.session_graph import learning_rate
from hookbridge.adapters.session_graph.steps import ReachedOps
from hookbridge.adapters.session_loop.training_run.step_reader import StepReader
from hookbridge.ground.protocols import RunContext


class RunArguments:
    """The `SessionRunArgs` of each run.

    `StepReader` knows what a run fetches. It is fed the rates that callbacks of the
    session have set, unless another `as_hooks` call feeds them. What the loop itself
    feeds is noted.

    The fast path is for steps that are only counted: no callback wants their batches,
    they fetch the same whatever they are fed, and they move the global step by a known
    number. So the arguments of one step are those of the next one of its kind.

    Args:
      reader: what reads the steps.
      rates: those that callbacks see.
    """

    def __init__(self, reader: StepReader, rates: LiveRates) -> None:
        self._reader = reader
        self._rates = rates
        # The one learning rate, if the loop may feed it.
        self.of_loop: Any = learning_rate.placeholder(rates.in_graph)
        # The rates that were fed, and whether a run has read them.
        self._has_read: dict[str, bool] = {}
        self.only_counts: bool = False  # whether no callback wants the batches
        self._counted: Any = None  # the kind of the last step, if it is only counted
        self._arguments: Any = None  # those of the last step

    def repeat(self, step: ReachedOps) -> Any:
        """Return the arguments of the last step if a step may use them again, or None.

        It may not if it is of another kind. If rates are set, it may not either: each
        step is fed them, and their feeds are checked.
        """
        counter = self._reader.counter
        is_same = step is self._counted and counter.is_counted and not counter.stale
        return self._arguments if is_same and not self._rates.changes.fed else None

    def begin_step(self, step: ReachedOps, feed_dict: Mapping[Any, Any] | None) -> Any:
        """Begin a step; return its arguments."""
        self._arguments = self._reader.begin(step, feed_dict)
        is_counted = self.only_counts and self._reader.is_same_again(step)
        self._counted = step if is_counted else None
        return self._with_rates(self._arguments, step, feed_dict)

    def begin_update(
        self, update: ReachedOps, feed_dict: Mapping[Any, Any] | None
    ) -> Any:
        """Begin an update without a step; return its arguments."""
        arguments = self._reader.begin_update(update, feed_dict)
        return self._with_rates(arguments, update, feed_dict)

    def without_events(self, reached: ReachedOps, run_context: RunContext) -> Any:
        """Return the arguments of a run that updates variables and has no events."""
        arguments = tf.compat.v1.train.SessionRunArgs(None)
        feed_dict = run_context.original_args.feed_dict
        return self._with_rates(arguments, reached, feed_dict)

    def _with_rates(
        self, arguments: Any, reached: ReachedOps, feed_dict: Mapping[Any, Any] | None
    ) -> Any:
        """Return the arguments of a run that updates variables, with the rates fed."""
        fed = self._rates.changes.fed
        if not fed or not self._rates.feeds_steps:
            return arguments
        rate_checks.check_feeds(fed, feed_dict)
        for tensor in fed:
            had_read = self._has_read.get(tensor.name, False)
            self._has_read[tensor.name] = had_read or tensor.op in reached.ops
        return arguments._replace(feed_dict=self._rates.feed_dict())

    def note_feeds(self, run_context: RunContext) -> None:
        """Note what the loop itself feeds for the one rate in a run."""
        feed_dict = run_context.original_args.feed_dict
        self._rates.each[0].fed_by_loop = rate_checks.loop_feed_of(
            self.of_loop, feed_dict
        )

    def check_read(self) -> None:
        """Refuse, at the end of an epoch, a rate that was set and never read."""
        rate_checks.check_read(self._has_read)
