"""`tf.contrib.rnn`: cells in one operation, and ones that run over whole sequences."""

from __future__ import annotations

import operator
from typing import Any

import tensorflow as tf

from hookbridge.contrib.areas.cells import of_keras2

v1: Any = tf.compat.v1
GRUCell: Any = of_keras2("GRUCell")
LSTMCell: Any = of_keras2("LSTMCell")


class GRUBlockCell(GRUCell):  # type: ignore[misc]
    """`tf.contrib.rnn.GRUBlockCell`: a `GRUCell` whose variables have other names."""

    def __init__(
        self,
        num_units: int | None = None,
        cell_size: int | None = None,
        reuse: bool | None = None,
        name: str = "gru_cell",
    ) -> None:
        if (cell_size is None) == (num_units is None):
            raise ValueError("Exactly one of num_units or cell_size must be provided.")
        super().__init__(num_units or cell_size, reuse=reuse, name=name)

    def build(self, inputs_shape: Any) -> None:
        """Make the variables."""
        size, units = inputs_shape[-1] + self._num_units, self._num_units
        ones, zeros = v1.ones_initializer(), v1.zeros_initializer()
        self._gate_kernel = self.add_weight("w_ru", shape=[size, 2 * units])
        self._gate_bias = self.add_weight("b_ru", shape=[2 * units], initializer=ones)
        self._candidate_kernel = self.add_weight("w_c", shape=[size, units])
        self._candidate_bias = self.add_weight("b_c", shape=[units], initializer=zeros)
        self.built = True


class LSTMBlockCell(LSTMCell):  # type: ignore[misc]
    """`tf.contrib.rnn.LSTMBlockCell`: an `LSTMCell` with the same variables."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        *,
        name: str = "lstm_cell",
        **options: Any,
    ) -> None:
        options |= {"cell_clip": cell_clip, "forget_bias": forget_bias, "name": name}
        super().__init__(num_units, use_peephole, **options)


class LSTMBlockFusedCell(LSTMBlockCell):
    """An `LSTMBlockCell` over inputs `[time, batch, depth]`."""

    def __init__(self, *args: Any, name: str = "lstm_fused_cell", **named: Any) -> None:
        super().__init__(*args, name=name, **named)
        self._given_name = name
        self._is_shared = bool(named.get("reuse"))
        self._place: Any = None  # the scope of its variables, since its first call

    num_units: property = property(operator.attrgetter("_num_units"))

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: object = None,
        sequence_length: object = None,
        scope: object = None,
    ) -> Any:
        """Return all steps' outputs, and the states at the ends of the sequences."""
        is_list = isinstance(inputs, list)
        if not is_list and inputs.shape.rank == 2:  # a step of the loop below
            return super().__call__(inputs, initial_state, scope=self._place)
        if self._place is None:
            # A cell after this one gets another name, which a scope inside of the
            # loop's would not give it.
            own_scope = scope
            if own_scope is None and self._is_shared:
                own_scope = self._given_name  # not a new name: its variables are there
            with v1.variable_scope(own_scope, default_name=self._given_name) as entered:
                self._place = entered
        if initial_state is not None:
            initial_state = v1.nn.rnn_cell.LSTMStateTuple(*initial_state)
        outputs, state = v1.nn.dynamic_rnn(
            self,
            tf.stack(inputs) if is_list else inputs,
            sequence_length,
            initial_state,
            dtype,
            time_major=True,
            scope=v1.get_variable_scope(),
        )
        return tf.unstack(outputs) if is_list else outputs, state


class TimeReversedFusedRNN:
    """A cell over whole sequences that begins at their ends."""

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> Any:
        """Return the cell's outputs, in the order of the inputs, and its state."""
        outputs, state = self._cell(
            _reverse(inputs, sequence_length),
            initial_state,
            dtype,
            sequence_length,
            scope,
        )
        return _reverse(outputs, sequence_length), state


def _reverse(sequence: object, lengths: object) -> Any:
    if isinstance(sequence, list):
        return sequence[::-1]
    if lengths is None:
        return tf.reverse(sequence, [0])
    return tf.reverse_sequence(sequence, lengths, 0, 1)
