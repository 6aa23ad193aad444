"""What the loop does with the live model around the events of callbacks."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from hookbridge.adapters.live_model.clone import Clone
from hookbridge.adapters.live_model.counters import LiveCounters
from hookbridge.adapters.live_model.optimizer import LiveOptimizer
from hookbridge.adapters.live_model.rates import LiveRates
from hookbridge.adapters.live_model.weights import LiveWeights
from hookbridge.ground import compat


class EagerClasses:
    """Classes of Keras 2 switched back to what eager models need.

    Making a layer or a model switches the bases of its class, to the version for graphs
    or to that for eager code. After a graph was built, by an Estimator's evaluation for
    example, eager models of the same classes fail: "in an invalid state".
    """

    def __init__(self) -> None:
        self._eager = [
            eager
            for keras in compat.keras_flavours()
            if not compat.is_keras3(keras)
            for eager in (keras.layers.Layer, keras.Model)
        ]

    def switch(self) -> None:
        """Switches back what a graph has switched, as making an eager model would."""
        for eager in self._eager:
            # Keras imports the version for graphs when it first needs it.
            module = sys.modules.get(f"{eager.__module__}_v1")
            if module is None:
                continue
            for switched in getattr(module, eager.__name__).__subclasses__():
                if switched.__module__ != module.__name__:
                    # `__new__` of Keras switches the bases, then makes an object. The
                    # object is not used; abstract classes refuse to make it.
                    with compat.private("eager_mode")(), contextlib.suppress(TypeError):
                        eager.__new__(switched)


class Link:
    """Keeps what callbacks hold of the live model equal to the session."""

    def __init__(
        self,
        weights: LiveWeights,
        optimizer: LiveOptimizer,
        counters: LiveCounters,
        clone: Clone | None,
    ) -> None:
        self.weights = weights
        self.clone = clone
        self._optimizer = optimizer
        self.count: Callable[..., None] = counters.count
        self._counters = counters
        self.rates: LiveRates = optimizer.live_rates
        self._weights_used = weights.mirrors.touched
        self._rates_used = self.rates.touched
        self.classes: EagerClasses = EagerClasses()
        self.run: Any = None  # a weak reference to the run, which the run itself sets

    def note_stop(self) -> None:
        """`stop_training` was set."""
        run = self.run and self.run()
        if run is not None:
            run.note_stop()

    @contextlib.contextmanager
    def event(self) -> Iterator[None]:
        """Around an event: callbacks read and set the session's present values."""
        mirrors = self.weights.mirrors
        self.classes.switch()
        self._counters.sync()
        mirrors.begin_event()
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
            self.weights.mirrors.end_run()

    def carry(self) -> None:
        """Before a run of the loop: what was assigned since the last event counts."""
        if self._weights_used or self._rates_used:
            self.push()

    def push(self) -> None:
        """Writes the values that callbacks have set to the session."""
        self.rates.push()
        self.weights.mirrors.push()

    def owns(self, variable: Any) -> bool:
        """Whether an eager variable follows the session."""
        return self.weights.mirrors.has(variable) or any(
            variable is own for own in self._optimizer.live_variables()
        )
