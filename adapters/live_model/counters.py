"""The batch counters and metric objects that callbacks ask a model for."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

from hookbridge.adapters.live_model.mirror import eager_variable
from hookbridge.ground import compat

# Names of metrics that `compile` of Keras accepts and `keras.metrics.get` does not.
_KERAS_NAMES = {
    "acc": "accuracy",
    "ce": "binary_crossentropy",
    "crossentropy": "binary_crossentropy",
}


class LiveCounters:
    """Counters of training, test and predict batches as eager int64 variables.

    A callback may keep such a variable from `set_model` on, so all variables that were
    handed out are brought up to date before each event. Keras 3 callbacks need metric
    objects of Keras 3.
    """

    def __init__(self, step: Callable[[], int], flavours: frozenset[str]) -> None:
        self._step = step
        self._flavours = flavours
        self._variables: dict[str, Any] = {}
        self._values = {"train": 0, "test": 0, "predict": 0}
        # Of the validation: callbacks can look them up too. The training may have the
        # same, and others.
        self.test_metrics: Sequence[str] = ()

    def count(self, mode: str, batches: int = 1) -> None:
        """Note that batches were processed in `mode`; 0 sets the counter to 0."""
        self._values[mode] = self._values[mode] + batches if batches else 0

    def variable(self, mode: str) -> Any:
        """Return the counter of "train", "test" or "predict" batches."""
        if mode not in self._variables:
            self._variables[mode] = eager_variable(0, f"{mode}_counter", "int64")
            self.sync()
        return self._variables[mode]

    def sync(self) -> None:
        """Bring the variables that were handed out up to date."""
        if self._variables:
            self._values["train"] = self._step()
            with compat.private("eager_mode")():
                for mode, variable in self._variables.items():
                    variable.assign(self._values[mode])

    def metrics(self, of_training: Sequence[str]) -> list[Any]:
        """Return metric objects by name; Keras 3 asks whether higher is better."""
        names = dict.fromkeys([*of_training, *self.test_metrics])
        if "keras3" not in self._flavours:
            # Callbacks of Keras 2 read only the name of a metric.
            return [types.SimpleNamespace(name=name) for name in names]
        import keras

        metrics = []
        with compat.private("eager_mode")():
            for name in names:
                try:
                    metrics.append(keras.metrics.get(_KERAS_NAMES.get(name, name)))
                except (ValueError, TypeError):
                    continue  # no metric of Keras, or a class that needs arguments
                metrics[-1].name = name
            metrics_list = compat.private("MetricsList")(
                [m for m in metrics if hasattr(m, "_direction")]
            )
        return [metrics_list]
