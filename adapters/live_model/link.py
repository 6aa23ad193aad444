"""What the loop does with the live model around the events of callbacks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from hookbridge.adapters.live_model.clone import Clone
from hookbridge.adapters.live_model.counters import LiveCounters
from hookbridge.adapters.live_model.eager_classes import EagerClasses
from hookbridge.adapters.live_model.optimizer import LiveOptimizer
from hookbridge.adapters.live_model.rates import LiveRates
from hookbridge.adapters.live_model.weights import LiveWeights
from hookbridge.ground.protocols import Variable


class Link:
    """Keeps what callbacks hold of the live model equal to the session.

    Args:
      weights: the weights of the model in the graph.
      optimizer: the stand-in for the optimizer of the graph.
      rates: the learning rates of the graph.
      counters: what callbacks ask for batch counters and metrics.
      clone: the eager clone of a Keras model; None without such a model.
      run: a weak reference to the run.
    """

    def __init__(
        self,
        weights: LiveWeights,
        optimizer: LiveOptimizer,
        rates: LiveRates,
        counters: LiveCounters,
        clone: Clone | None,
        run: Callable[[], Any],
    ) -> None:
        self.weights = weights
        self.optimizer = optimizer
        self.rates = rates
        self.counters = counters
        self.clone = clone
        self._weights_used = weights.mirrors.touched
        self._rates_used = rates.touched
        self.classes: EagerClasses = EagerClasses()
        self.run = run

    def note_stop(self) -> None:
        """Tell the run that `stop_training` was set."""
        run = self.run()
        if run is not None:
            run.note_stop()

    @contextlib.contextmanager
    def event(self) -> Iterator[None]:
        """Let callbacks read and set the session's present values, in a context."""
        mirrors = self.weights.mirrors
        self.classes.switch()
        self.counters.sync()
        mirrors.begin_event()
        self.rates.begin_event()
        self.optimizer.sync_iterations()
        try:
            yield
            self.push()
        except BaseException:
            self.rates.drop()
            raise
        finally:
            self.rates.end_event()
            mirrors.end_event()

    def end_run(self) -> None:
        """Give kept variables their last values: they may be read after the run."""
        with self.event():
            self.weights.mirrors.end_run()

    def push_assigned(self) -> None:
        """Write what was assigned since the last event, before a run of the loop."""
        if self._weights_used or self._rates_used:
            self.push()

    def push(self) -> None:
        """Write the values that callbacks have set to the session."""
        self.rates.push()
        self.weights.mirrors.push()

    def owns(self, variable: Variable) -> bool:
        """Return whether an eager variable follows the session."""
        return self.weights.mirrors.has(variable) or any(
            variable is live_variable
            for live_variable in self.optimizer.live_variables()
        )
