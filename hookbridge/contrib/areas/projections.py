"""`tf.contrib.rnn`'s cells that project the inputs or the outputs of another cell."""

from __future__ import annotations

from typing import Any

from hookbridge.contrib.areas.cells import RNNCell
from hookbridge.contrib.areas.linear import Linear


class _Projection(RNNCell):  # type: ignore[misc]
    """A cell with a dense layer, whose variables are `kernel` and `bias`."""

    def __init__(
        self, cell: Any, size: int, activation: Any = None, reuse: object = None
    ) -> None:
        super().__init__(_reuse=reuse)
        self._cell = cell
        self._size = size
        self._activation = activation
        self._linear: Linear | None = None

    @property
    def state_size(self) -> Any:
        """The sizes of the cell's states."""
        return self._cell.state_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Return the cell's first state."""
        return self._cell.zero_state(batch_size, dtype)

    def _project(self, inputs: Any) -> Any:
        """Return the inputs through a dense layer.

        The first call makes its variables.
        """
        if self._linear is None:
            self._linear = Linear(inputs, self._size, True)
        result = self._linear(inputs)
        return self._activation(result) if self._activation else result


class InputProjectionWrapper(_Projection):
    """`tf.contrib.rnn.InputProjectionWrapper`."""

    def __init__(
        self,
        cell: object,
        num_proj: int,
        activation: object = None,
        input_size: object = None,
        reuse: object = None,
    ) -> None:
        super().__init__(cell, num_proj, activation, reuse)

    @property
    def output_size(self) -> Any:
        """The size of the cell's outputs."""
        return self._cell.output_size

    def call(self, inputs: Any, state: Any) -> Any:
        """Project the inputs, then run the cell."""
        return self._cell(self._project(inputs), state)


class OutputProjectionWrapper(_Projection):
    """`tf.contrib.rnn.OutputProjectionWrapper`."""

    def __init__(
        self,
        cell: object,
        output_size: int,
        *args: Any,
        **named: Any,
    ) -> None:
        if output_size < 1:
            raise ValueError(f"Parameter output_size must be > 0: {output_size}.")
        super().__init__(cell, output_size, *args, **named)

    @property
    def output_size(self) -> int:
        """The size of the projected outputs."""
        return self._size

    def call(self, inputs: Any, state: Any) -> Any:
        """Run the cell, then project its outputs."""
        output, new_state = self._cell(inputs, state)
        return self._project(output), new_state
