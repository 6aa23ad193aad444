"""What the loop does with the live model around the events of callbacks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from hookbridge import compat
from hookbridge.adapters.live_model.clone import Clone
from hookbridge.adapters.live_model.counters import LiveCounters
from hookbridge.adapters.live_model.optimizer import LiveOptimizer
from hookbridge.adapters.live_model.weights import LiveWeights
from hookbridge.adapters.session_graph.saved import Entry


class EagerClasses:
    """Classes of Keras 2 switched back to what eager models need.

    Making a layer or a model switches the bases of its class, to the version for graphs
    or to that for eager code. After a graph was built, by an Estimator's evaluation for
    example, eager models of the same classes fail: "in an invalid state".
    """

    def __init__(self) -> None:
        self._versions = [
            versions
            for keras in compat.keras_flavours()
            if not compat.is_keras3(keras)
            for versions in (
                _Versions(keras.layers.Layer, "base_layer_v1"),
                _Versions(keras.Model, "training_v1"),
            )
        ]

    def switch(self, *, quickly: bool = False) -> None:
        """Switches back what a graph has switched, as making an eager model would."""
        for versions in self._versions:
            versions.switch(quickly)


class _Versions:
    """The two versions of one class."""

    def __init__(self, eager: Any, module: str) -> None:
        self._eager = eager
        self._module = module
        self._graph: Any = None

    def switch(self, quickly: bool) -> None:
        if self._graph is None and (quickly or not self._find()):
            return
        for switched in self._graph.__subclasses__():
            if switched.__module__ != self._graph.__module__:
                # `__new__` of Keras switches the bases, then makes an object. The
                # object is not used; abstract classes refuse to make it.
                with compat.private("eager_mode")(), contextlib.suppress(TypeError):
                    self._eager.__new__(switched)

    def _find(self) -> bool:
        """Looks for the version for graphs: Keras imports it when it first needs it."""
        for each in self._eager.__subclasses__():
            if each.__module__.endswith(self._module):
                self._graph = each
        return self._graph is not None


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
        """Why the graph's Keras model cannot be cloned; makes the clone if it can."""
        # Empty if there is a clone, or if there is no Keras model.
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
