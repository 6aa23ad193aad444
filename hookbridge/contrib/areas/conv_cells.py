"""`tf.contrib.rnn`: LSTM cells whose gates are convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from hookbridge.contrib.areas.cells import RNNCell

v1: Any = tf.compat.v1


class ConvLSTMCell(RNNCell):  # type: ignore[misc]
    """`tf.contrib.rnn.ConvLSTMCell` (https://arxiv.org/abs/1506.04214)."""

    def __init__(
        self,
        conv_ndims: int,
        input_shape: Sequence[int],
        output_channels: int,
        kernel_shape: Sequence[int],
        use_bias: bool = True,
        skip_connection: bool = False,
        forget_bias: float = 1.0,
        initializers: object = None,
        name: str = "conv_lstm_cell",
    ) -> None:
        super().__init__(name=name)
        if conv_ndims != len(input_shape) - 1:
            raise ValueError(
                f"Invalid input_shape {input_shape} for conv_ndims={conv_ndims}."
            )
        self._channels = output_channels
        self._kernel_shape = list(kernel_shape)
        self._use_bias = use_bias
        self._skips = skip_connection
        self._forget_bias = forget_bias
        *self._place, self._input_channels = input_shape

    @property
    def state_size(self) -> Any:
        """The shapes of the cell's states."""
        shape = tf.TensorShape([*self._place, self._channels])
        return v1.nn.rnn_cell.LSTMStateTuple(shape, shape)

    @property
    def output_size(self) -> Any:
        """The shape of the cell's outputs."""
        more = self._input_channels if self._skips else 0
        return tf.TensorShape([*self._place, self._channels + more])

    def call(self, inputs: Any, state: Any) -> Any:
        """Return the outputs `[batch, ..., channels]` of a step, and the new state."""
        c, h = state
        both = tf.concat([inputs, h], -1)
        shape = [*self._kernel_shape, both.shape[-1], 4 * self._channels]
        kernel = v1.get_variable("kernel", shape, inputs.dtype)
        gates = tf.nn.convolution(both, kernel, padding="SAME")
        if self._use_bias:
            zeros = v1.zeros_initializer()
            gates += v1.get_variable("biases", shape[-1:], inputs.dtype, zeros)
        i, j, f, o = tf.split(gates, 4, -1)
        c = tf.sigmoid(f + self._forget_bias) * c + tf.sigmoid(i) * tf.tanh(j)
        output = tf.tanh(c) * tf.sigmoid(o)
        if self._skips:
            output = tf.concat([output, inputs], -1)
        return output, v1.nn.rnn_cell.LSTMStateTuple(c, output)


class Conv1DLSTMCell(ConvLSTMCell):
    """`tf.contrib.rnn.Conv1DLSTMCell`."""

    def __init__(self, name: str = "conv_1d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=1, name=name, **kwargs)


class Conv2DLSTMCell(ConvLSTMCell):
    """`tf.contrib.rnn.Conv2DLSTMCell`."""

    def __init__(self, name: str = "conv_2d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=2, name=name, **kwargs)


class Conv3DLSTMCell(ConvLSTMCell):
    """`tf.contrib.rnn.Conv3DLSTMCell`."""

    def __init__(self, name: str = "conv_3d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=3, name=name, **kwargs)
