"""The means of the running epoch, which a restart in mid-epoch goes on from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from hookbridge.adapters.keras_model.optimizers import tf_variable
from hookbridge.adapters.keras_model.variables import components
from hookbridge.adapters.state.loop_state import Means
from hookbridge.ground import compat
from hookbridge.ground.protocols import KerasModel, Variable


class EpochMeans(Protocol):
    """Who keeps the means of a loop's epoch."""

    def means(self) -> Means:
        """Return the means of the epoch so far."""

    def go_on(self, means: Means) -> Means:
        """Go on from the means of an earlier run; return those that it lacks yet."""


class MetricMeans:
    """The metrics of a model, in which `fit` keeps what it reports of an epoch."""

    def __init__(self, model: KerasModel) -> None:
        self._model = model

    def _metrics(self) -> dict[str, Any]:
        """Return the metrics that exist, by name.

        Keras 2 makes some in the first step.
        """
        metrics: dict[str, Any] = {}
        for metric in self._model.metrics:
            for part in getattr(metric, "metrics", None) or [metric]:
                if part.variables:
                    name, same = str(part.name), 1
                    while name in metrics:
                        name, same = f"{part.name}_{same}", same + 1
                    metrics[name] = part
        return metrics

    def means(self) -> Means:
        """Return the sums of the metrics."""
        return read_metrics(self._metrics())

    def go_on(self, means: Means) -> Means:
        """Set the metrics to sums of an earlier run; return what has no metric yet."""
        return write_metrics(self._metrics(), means)


def read_metrics(metrics: Mapping[str, Any]) -> Means:
    """Return what metrics of Keras hold."""
    sums: dict[str, tuple[float, float]] = {}
    whole: dict[str, Any] = {}
    with compat.private("eager_mode")():  # a live graph may be the default one
        for name, metric in metrics.items():
            values = [_read(variable) for variable in metric.variables]
            if _is_mean(metric):
                sums[name] = float(values[0]), float(values[1])
            else:
                whole |= {f"{name}/{n}": value for n, value in enumerate(values)}
    return Means(sums, whole)


def write_metrics(metrics: Mapping[str, Any], means: Means) -> Means:
    """Set metrics of Keras to what an earlier run had; return what is left.

    Args:
      metrics: the metrics of a model by name; their variables are set.
      means: what was saved in the middle of an epoch.
    """
    with compat.private("eager_mode")():
        for name, metric in metrics.items():
            values: list[Any] = [
                means.metrics.get(f"{name}/{n}") for n, _ in enumerate(metric.variables)
            ]
            if _is_mean(metric):
                values = list(means.sums.get(name, ()))
            for variable, value in zip(metric.variables, values, strict=False):
                _write(variable, value)
    return Means(
        {name: pair for name, pair in means.sums.items() if name not in metrics},
        {k: v for k, v in means.metrics.items() if k.rpartition("/")[0] not in metrics},
    )


def _is_mean(metric: Any) -> bool:
    """Return whether a metric of any Keras reports the mean of what it was given."""
    kinds = (kind for kind in type(metric).__mro__ if kind.__name__ == "Mean")
    mean: Any = next(kinds, None)
    # The root of a mean has a `result` of its own.
    return mean is not None and type(metric).result is mean.result


def _read(variable: Variable) -> Any:
    parts = [np.asarray(part) for part in components(tf_variable(variable))]
    is_spread = len(parts) > 1 and _is_summed(variable)
    return np.sum(parts, axis=0) if is_spread else parts[0]


def _write(variable: Variable, value: object) -> None:
    variable = tf_variable(variable)
    first, *replicas = components(variable)
    if value is None or np.shape(value) != tuple(first.shape):
        return
    value = np.asarray(value, first.dtype.as_numpy_dtype)
    first.assign(value)
    for replica in replicas:  # their sums are added up
        replica.assign(np.zeros_like(value) if _is_summed(variable) else value)


def _is_summed(variable: Variable) -> bool:
    name = getattr(tf_variable(variable).synchronization, "name", "")
    return str(name) == "ON_READ"
