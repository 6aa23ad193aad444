"""The learning rates that a training run feeds in the steps of its session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from hookbridge.adapters.live_model import rates
from hookbridge.adapters.live_model.rate import OverriddenRates
from hookbridge.adapters.live_model.rates import LiveRates
from hookbridge.adapters.session_graph import learning_rate
from hookbridge.adapters.session_graph.learning_rate import LearningRate
from hookbridge.adapters.session_graph.steps import ReachedOps
from hookbridge.adapters.session_loop import monitors
from hookbridge.ground.protocols import RunContext, Session


class FedRates:
    """Feeds what callbacks have set, and notes what the loop itself feeds.

    `values` has the rates to feed: all overridden ones of the session, or none if
    another `as_hooks` call feeds them.
    """

    def __init__(self, live: LiveRates, of_graph: Sequence[LearningRate]) -> None:
        self._live = live
        self.values: OverriddenRates = live.feeds
        # The one learning rate, if the loop may feed it.
        self.of_loop: Any = learning_rate.placeholder(of_graph)
        # The rates that were fed, and whether a run has read them.
        self._has_read: dict[str, bool] = {}

    def join(self, session: Session) -> None:
        """Feed the rates of a session, in the place of the call that did so before."""
        self.values = self._live.join(session)
        self.values.feed_from(self._stop)

    def _stop(self) -> None:
        self.values = OverriddenRates()

    def note(self, run_context: RunContext) -> None:
        """Note what the loop itself feeds for the one rate in a run."""
        feed_dict = run_context.original_args.feed_dict
        self._live.note_fed(rates.loop_feed_of(self.of_loop, feed_dict))

    def added_to(
        self, arguments: Any, reached: ReachedOps, feed_dict: Mapping[Any, Any] | None
    ) -> Any:
        """Return the arguments of a run that updates variables, with the rates fed."""
        if not self.values:
            return arguments
        rates.check_feeds(self.values, feed_dict)
        for tensor in self.values:
            had_read = self._has_read.get(tensor.name, False)
            self._has_read[tensor.name] = had_read or tensor.op in reached.ops
        return arguments._replace(feed_dict=self.values.feed_dict())

    def without_events(self, reached: ReachedOps, run_context: RunContext) -> Any:
        """Return the arguments of a run that updates variables and has no events."""
        feed_dict = run_context.original_args.feed_dict
        arguments = tf.compat.v1.train.SessionRunArgs(None)
        return self.added_to(arguments, reached, feed_dict)

    def check(self) -> None:
        """Refuse, at the end of an epoch, a rate that was set and never read."""
        monitors.check_rates(self._has_read)
