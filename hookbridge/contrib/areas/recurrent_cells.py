"""`tf.contrib.rnn`: cells that TensorFlow removed, with their variable names."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hookbridge.contrib.areas.cells import RNNCell
from hookbridge.contrib.areas.linear import linear

v1: Any = tf.compat.v1
_EPSILON = 1e-12
_NAS_PARTS = 8


class LayerNormBasicLSTMCell(RNNCell):  # type: ignore[misc]
    """`tf.contrib.rnn.LayerNormBasicLSTMCell`.

    It normalizes its gates (https://arxiv.org/abs/1607.06450) and drops parts of its
    update (https://arxiv.org/abs/1603.05118).
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: object = None,
        activation: Any = tf.tanh,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: object = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._activation = activation
        self._layer_norm = layer_norm
        self._gain, self._shift = norm_gain, norm_shift
        self._keep_prob, self._seed = dropout_keep_prob, dropout_prob_seed

    @property
    def state_size(self) -> Any:
        """The sizes of the cell's states."""
        return v1.nn.rnn_cell.LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        """The size of the cell's outputs."""
        return self._num_units

    def call(self, inputs: Any, state: Any) -> Any:
        """Return the outputs `[batch, units]` of one step, and the new state."""
        c, h = state
        size = 4 * self._num_units
        gates = _product(tf.concat([inputs, h], 1), size, "kernel")
        if not self._layer_norm:
            gates += v1.get_variable("bias", [size], gates.dtype)
        names = ("input", "transform", "forget", "output")
        i, j, f, o = map(self._normalize, tf.split(gates, 4, 1), names)
        update = self._activation(j)
        if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
            update = v1.nn.dropout(update, self._keep_prob, seed=self._seed)
        c = c * tf.sigmoid(f + self._forget_bias) + tf.sigmoid(i) * update
        c = self._normalize(c, "state")
        h = self._activation(c) * tf.sigmoid(o)
        return h, v1.nn.rnn_cell.LSTMStateTuple(c, h)

    def _normalize(self, x: Any, name: str) -> Any:
        """Return values `[batch, units]` with mean 0 and variance 1 in each row."""
        if not self._layer_norm:
            return x
        with v1.variable_scope(name):
            gain, shift = map(v1.constant_initializer, (self._gain, self._shift))
            gamma = v1.get_variable("gamma", x.shape[-1:], x.dtype, gain)
            beta = v1.get_variable("beta", x.shape[-1:], x.dtype, shift)
        mean, variance = tf.nn.moments(x, [1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, _EPSILON)


class NASCell(RNNCell):  # type: ignore[misc]
    """`tf.contrib.rnn.NASCell` (https://arxiv.org/abs/1611.01578)."""

    def __init__(
        self,
        num_units: int,
        num_proj: int | None = None,
        use_bias: bool = False,
        reuse: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, **kwargs)
        self._num_units = num_units
        self._num_proj = num_proj
        self._use_bias = use_bias

    @property
    def state_size(self) -> Any:
        """The sizes of the cell's states."""
        return v1.nn.rnn_cell.LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> int:
        """The size of the cell's outputs."""
        return self._num_proj or self._num_units

    def call(self, inputs: Any, state: Any) -> Any:
        """Return the outputs `[batch, units]` of one step, and the new state."""
        c, h = state
        size = _NAS_PARTS * self._num_units
        from_state = _product(h, size, "recurrent_kernel")
        from_inputs = _product(inputs, size, "kernel")
        if self._use_bias:
            zeros = v1.zeros_initializer()
            from_state += v1.get_variable("bias", [size], h.dtype, zeros)
        a = tf.split(from_inputs, _NAS_PARTS, 1)
        b = tf.split(from_state, _NAS_PARTS, 1)
        left = tf.tanh(tf.sigmoid(a[0] + b[0]) * tf.nn.relu(a[1] + b[1]))
        right = tf.tanh(tf.sigmoid(a[2] + b[2]) + tf.nn.relu(a[3] * b[3]))
        gate = tf.tanh(tf.tanh(a[4] + b[4]) * tf.sigmoid(a[5] + b[5]))
        other_gate = tf.sigmoid(tf.tanh(a[6] + b[6]) + tf.sigmoid(a[7] + b[7]))
        c = tf.tanh(left + c) * right
        h = tf.tanh(c * tf.tanh(gate + other_gate))
        if self._num_proj is not None:
            h = _product(h, self._num_proj, "projection_weights")
        return h, v1.nn.rnn_cell.LSTMStateTuple(c, h)


class AttentionCellWrapper(RNNCell):  # type: ignore[misc]
    """`tf.contrib.rnn.AttentionCellWrapper` (https://arxiv.org/abs/1601.06733)."""

    def __init__(
        self,
        cell: Any,
        attn_length: int,
        attn_size: int | None = None,
        attn_vec_size: int | None = None,
        input_size: int | None = None,
        state_is_tuple: bool = True,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        if tf.nest.is_nested(cell.state_size) and not state_is_tuple:
            raise ValueError(
                "Cell returns tuple of states, but the flag state_is_tuple is not set. "
                f"State size is: {cell.state_size}"
            )
        if attn_length <= 0:
            raise ValueError(
                f"attn_length should be greater than zero, got {attn_length}"
            )
        self._cell = cell
        self._length = attn_length
        self._size = attn_size or cell.output_size
        self._vec_size = attn_vec_size or self._size
        self._input_size = input_size
        self._state_is_tuple = state_is_tuple
        self._sizes = cell.state_size, self._size, self._size * attn_length

    @property
    def state_size(self) -> Any:
        """The sizes of the cell's state, of the attention and of the window."""
        return self._sizes if self._state_is_tuple else sum(self._sizes)

    @property
    def output_size(self) -> int:
        """The size of the outputs."""
        return self._size

    def call(self, inputs: Any, state: Any) -> Any:
        """Return the outputs `[batch, attn_size]` of one step, and the new state."""
        if not self._state_is_tuple:
            state = tf.split(state, list(self._sizes), 1)
        cell_state, attention, flat = state
        window = tf.reshape(flat, [-1, self._length, self._size])
        inputs = linear([inputs, attention], self._input_size or inputs.shape[1], True)
        output, cell_state = self._cell(inputs, cell_state)
        attention = self._attend(tf.concat(tf.nest.flatten(cell_state), 1), window)
        with v1.variable_scope("attn_output_projection"):
            output = linear([output, attention], self._size, True)
        window = tf.concat([window[:, 1:], output[:, None]], 1)
        flat = tf.reshape(window, [-1, self._length * self._size])
        new = (cell_state, attention, flat)
        return output, new if self._state_is_tuple else tf.concat(new, 1)

    def _attend(self, query: object, window: Any) -> Any:
        """Return the mean `[batch, size]` of a window `[batch, length, size]`."""
        with v1.variable_scope("attention"):
            weights = v1.get_variable("attn_w", [1, 1, self._size, self._vec_size])
            vector = v1.get_variable("attn_v", [self._vec_size])
            features = tf.nn.conv2d(window[:, :, None], weights, 1, "SAME")[:, :, 0]
            projected = linear([query], self._vec_size, True)[:, None]
        scores = tf.reduce_sum(vector * tf.tanh(features + projected), 2)
        return tf.reduce_sum(tf.nn.softmax(scores)[:, :, None] * window, 1)


def _product(x: Any, size: int, name: str) -> Any:
    """Return `x` `[batch, depth]` through a matrix of that name: `[batch, size]`."""
    return tf.matmul(x, v1.get_variable(name, [x.shape[1], size], x.dtype))
