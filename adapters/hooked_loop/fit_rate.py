"""A rate that callbacks have set in a `fit`, for the state beside its checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hookbridge.adapters.guests.kinds import keras_behind
from hookbridge.adapters.keras_model.optimizers import (
    is_in_graph,
    learning_rate_variable,
    optimizer_of,
)
from hookbridge.adapters.keras_model.variables import assign_all, components
from hookbridge.adapters.state.loop_state import LoopState
from hookbridge.ground import compat
from hookbridge.ground.protocols import KerasModel


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

    def begin(self, loops: Sequence[LoopState]) -> None:
        """Go on with the rate that a callback set, in whichever loop."""
        if self._variable is not None:
            rates = {rate for loop in loops for rate in loop.rates.values()}
            self._unset = None if rates else self._present()
            if len(rates) == 1:
                assign_all(self._model, [(self._variable, *rates)])

    def set_by_callbacks(self) -> dict[str, float]:
        """Return the rate by a name, if it is another one than in the beginning."""
        rate = None if self._variable is None else self._present()
        return {} if rate is None or rate == self._unset else {"learning_rate": rate}

    def _present(self) -> float:
        if is_in_graph(self._variable):
            backend = keras_behind(self._model).backend
            return float(backend.get_value(self._variable))
        with compat.private("eager_mode")():  # a live graph may be the default one
            # A distributed variable would enter its strategy, under any graph.
            return float(components(self._variable)[0].numpy())
