"""`tf.contrib.rnn`: cells that run over a whole sequence at once."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf


@functools.cache
def _lstm_block_fused_cell() -> Any:
    v1: Any = tf.compat.v1

    class LSTMBlockFusedCell(v1.layers.Layer):  # type: ignore[misc]
        """An LSTM over inputs `[time, batch, depth]`, by TensorFlow's `BlockLSTM`.

        Variables have the names that TensorFlow 1 gave them.
        """

        num_units: int

        def __init__(
            self,
            num_units: int,
            forget_bias: float = 1.0,
            cell_clip: float | None = None,
            use_peephole: bool = False,
            reuse: Any = None,
            dtype: Any = None,
            name: str = "lstm_fused_cell",
        ) -> None:
            super().__init__(_reuse=reuse, name=name, dtype=dtype)
            self.num_units = num_units
            self._forget_bias = forget_bias
            self._clip = -1.0 if cell_clip is None else cell_clip
            self._use_peephole = use_peephole
            self.input_spec = v1.layers.InputSpec(ndim=3)

        def build(self, input_shape: Any) -> None:
            depth = tf.TensorShape(input_shape).as_list()[2]
            units = self.num_units
            self._kernel = self.add_weight("kernel", [depth + units, units * 4])
            zeros = v1.constant_initializer(0.0)
            self._bias = self.add_weight("bias", [units * 4], initializer=zeros)
            if self._use_peephole:
                self._diagonals = [
                    self.add_weight(f"w_{gate}_diag", [units]) for gate in "ifo"
                ]
            self.built = True

        def call(
            self,
            inputs: Any,
            initial_state: Any = None,
            dtype: Any = None,
            sequence_length: Any = None,
        ) -> Any:
            is_list = isinstance(inputs, list)
            inputs = tf.stack(inputs) if is_list else inputs
            times, batch = tf.unstack(tf.shape(inputs)[:2])
            if initial_state is None:
                if dtype is None:
                    raise ValueError("Either initial_state or dtype is needed")
                initial_state = [tf.zeros([batch, self.num_units], dtype)] * 2
            cell, output = initial_state
            lengths = tf.fill([batch], times)
            if sequence_length is not None:
                lengths = tf.cast(sequence_length, tf.int32)
            none = tf.zeros([self.num_units], cell.dtype)
            peephole = self._diagonals if self._use_peephole else [none] * 3
            block = tf.raw_ops.BlockLSTM(
                seq_len_max=tf.cast(tf.reduce_max(lengths), tf.int64),
                x=inputs,
                cs_prev=cell,
                h_prev=output,
                w=self._kernel,
                wci=peephole[0],
                wcf=peephole[1],
                wco=peephole[2],
                b=self._bias,
                forget_bias=self._forget_bias,
                cell_clip=self._clip,
                use_peephole=self._use_peephole,
            )
            mask = tf.sequence_mask(lengths, times, cell.dtype)
            outputs = block.h * tf.transpose(mask)[:, :, None]
            place = tf.stack([lengths, tf.range(batch)], axis=1)
            last = (
                tf.gather_nd(tf.concat([first[None], rest], 0), place)
                for first, rest in ((cell, block.cs), (output, outputs))
            )
            state = v1.nn.rnn_cell.LSTMStateTuple(*last)
            return (tf.unstack(outputs) if is_list else outputs), state

    return LSTMBlockFusedCell


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
        outputs, state = self._cell(
            _reversed(inputs, sequence_length),
            initial_state=initial_state,
            dtype=dtype,
            sequence_length=sequence_length,
            **({"scope": scope} if scope is not None else {}),
        )
        return _reversed(outputs, sequence_length), state


def _reversed(sequence: Any, lengths: Any) -> Any:
    if isinstance(sequence, list):
        return sequence[::-1]
    if lengths is None:
        return tf.reverse(sequence, [0])
    return tf.reverse_sequence(sequence, lengths, 0, 1)


def __getattr__(name: str) -> Any:
    # The class derives from a layer of Keras 2: Keras is loaded only if it is needed.
    if name == "LSTMBlockFusedCell":
        return _lstm_block_fused_cell()
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
