"""What the loop does with the live model around the events of callbacks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from hookbridge.adapters.live_model.clone import Clone
from hookbridge.adapters.live_model.counters import LiveCounters
from hookbridge.adapters.live_model.eager_classes import EagerClasses
from hookbridge.adapters.live_model.optimizer import LiveOptimizer
from hookbridge.adapters.live_model.weights import LiveWeights
from hookbridge.adapters.session_graph.saved import Entry


class Link:
    """Keeps what callbacks hold of the live model equal to the session."""

    def __init__(
        self,
        weights: LiveWeights,
        optimizer: LiveOptimizer,
        counters: LiveCounters,
        clone: Clone | None,
    ) -> None:
        self._weights = weights
        self._optimizer = optimizer
        self.count = counters.count
        self._counters = counters
        self.rates = optimizer.live_rates
        self._weights_used = weights.mirrors.touched
        self._rates_used = self.rates.touched
        self.classes = EagerClasses()
        self.run: Any = None  # a weak reference to the run, which the run itself sets
        self._clone = clone

    def not_cloned(self) -> str:
        """Why the graph's Keras model cannot be cloned; makes the clone if it can.

        Empty if there is a clone, or if there is no Keras model.
        """
        return self._clone.reason if self._clone is not None else ""

    @contextlib.contextmanager
    def event(self, *, of_batch: bool = False) -> Iterator[None]:
        """Around an event: callbacks read and set the session's present values."""
        mirrors = self._weights.mirrors
        self.classes.switch(quickly=of_batch)
        self._counters.sync()
        mirrors.begin_event(of_batch=of_batch)
        self.rates.begin_event()
        self._optimizer.sync_iterations()
        try:
            yield
            self.push()
        finally:
            self.rates.end_event()
            mirrors.end_event()

    def end_run(self) -> None:
        """Gives kept variables their last values: they may be read after the run."""
        with self.event():
            self._weights.mirrors.end_run()

    def carry(self) -> None:
        """Before a run of the loop: what was assigned since the last event counts."""
        if self._weights_used or self._rates_used:
            self.push()

    def push(self) -> None:
        """Writes the values that callbacks have set to the session."""
        self.rates.push()
        self._weights.mirrors.push()

    def entries(self) -> dict[Entry, Any]:
        """The session's weights, as a checkpoint has them."""
        return self._weights.entries()

    @property
    def trained(self) -> list[Any]:
        """The trained variables of the graph."""
        return list(self._weights.trainable)

    def owns(self, variable: Any) -> bool:
        """Whether an eager variable follows the session."""
        return self._weights.mirrors.has(variable) or any(
            variable is own for own in self._optimizer.live_variables()
        )
