"""What a `fit` keeps beside its callbacks: its epoch, and a rate that they have set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hookbridge.adapters.guests.kinds import keras_behind
from hookbridge.adapters.hooked_loop.epoch_means import Means
from hookbridge.adapters.keras_model.optimizers import (
    is_in_graph,
    learning_rate_variable,
    optimizer_of,
)
from hookbridge.adapters.keras_model.variables import assign_all, components
from hookbridge.adapters.state import epochs
from hookbridge.adapters.state.epochs import Epoch
from hookbridge.ground import compat
from hookbridge.ground.protocols import KerasModel


class FitLoopState(NamedTuple):
    """What the loop of an earlier run has saved."""

    rates: tuple[float, ...]  # those that callbacks had set
    epoch: Epoch | None
    means: Means = Means()  # of the open epoch


def parse(loop: Any, step: int) -> FitLoopState:
    """Read what a loop has saved; raise anything if it is damaged."""
    rates = (loop.get("learning_rates") or {}).values()
    floats = tuple(float(rate) for rate in rates)
    sums = {
        str(name): (float(total), float(weight))
        for name, (total, weight) in (loop.get("epoch_logs") or {}).items()
    }
    means = Means(sums, dict(loop.get("metrics") or {}))
    return FitLoopState(floats, epochs.of_loop(loop, step), means)


def open_epoch(loops: Sequence[FitLoopState]) -> FitLoopState | None:
    """Return the state with the epoch that an earlier run has not ended, or None."""
    begun = [loop for loop in loops if loop.epoch is not None]
    first = begun[0] if begun else None
    if first is None or first.epoch is None or not first.epoch.is_open:
        return None
    # Groups of callbacks in a session may have means of their own.
    sums = {k: v for loop in reversed(begun) for k, v in loop.means.sums.items()}
    return first._replace(means=Means(sums, first.means.metrics))


class FitRate:
    """The learning rate of a model, which is state once a callback has set it."""

    def __init__(self, model: KerasModel) -> None:
        self._model = model
        # Its value as long as no callback has set it; None once one has.
        self._unset: float | None = None

    @property
    def _variable(self) -> Any:
        """The variable of the optimizer that the model has now."""
        return learning_rate_variable(optimizer_of(self._model))

    def begin(self, loops: Sequence[FitLoopState]) -> None:
        """Go on with the rate that a callback set, in whichever loop."""
        if self._variable is not None:
            rates = {rate for loop in loops for rate in loop.rates}
            self._unset = None if rates else self._present()
            if len(rates) == 1:
                assign_all(self._model, [(self._variable, *rates)])

    def document(self) -> dict[str, Any]:
        """Return what is saved of it.

        Nothing while it is as it was in the beginning.
        """
        if self._variable is None:
            return {}
        rate = self._present()
        is_set = rate != self._unset
        return {"learning_rates": {"learning_rate": rate}} if is_set else {}

    def _present(self) -> float:
        if is_in_graph(self._variable):
            backend = keras_behind(self._model).backend
            return float(backend.get_value(self._variable))
        with compat.private("eager_mode")():  # a live graph may be the default one
            # A distributed variable would enter its strategy, under any graph.
            return float(components(self._variable)[0].numpy())
