"""A cell with attention: `AttentionWrapper` and its state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from hookbridge.contrib.areas.cells import RNNCell


class AttentionWrapperState(NamedTuple):
    """The state of an `AttentionWrapper`."""

    cell_state: Any
    attention: Any
    time: Any
    alignments: Any
    alignment_history: Any
    attention_state: Any

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """Return a copy with some fields replaced."""
        return self._replace(**kwargs)


class AttentionWrapper(RNNCell):  # type: ignore[misc]
    """A cell whose inputs and outputs have attention to a memory.

    `cell_input_fn(inputs, attention)` gives the inputs of the cell.
    """

    def __init__(
        self,
        cell: Any,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Callable[[Any, Any], Any] | None = None,
        output_attention: bool = True,
        initial_cell_state: object = None,
        name: str | None = None,
        *,
        dtype: object = None,
    ) -> None:
        super().__init__(name=name)
        if isinstance(attention_mechanism, list | tuple):
            raise NotImplementedError(
                "Received several attention mechanisms; expected one: hookbridge "
                "does not support lists in tf.contrib.seq2seq.AttentionWrapper. Put "
                "an AttentionWrapper around an AttentionWrapper instead."
            )
        self._attention_mechanism = attention_mechanism
        self._attention_layer = None
        self._attention_layer_size = int(attention_mechanism.values.shape[-1])
        if attention_layer_size is not None:
            self._attention_layer_size = attention_layer_size
            self._attention_layer = tf.compat.v1.layers.Dense(
                attention_layer_size,
                name="attention_layer",
                use_bias=False,
                dtype=dtype,
            )
        self._cell = cell
        self._alignment_history = alignment_history
        self._cell_input_fn = cell_input_fn or _side_by_side
        self._output_attention = output_attention
        self._initial_cell_state = initial_cell_state

    @property
    def output_size(self) -> Any:
        """The size of the outputs."""
        if self._output_attention:
            return self._attention_layer_size
        return self._cell.output_size

    @property
    def state_size(self) -> Any:
        """The sizes of the state."""
        mechanism = self._attention_mechanism
        size = mechanism.alignments_size
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            attention=self._attention_layer_size,
            time=tf.TensorShape([]),
            alignments=size,
            alignment_history=size if self._alignment_history else (),
            attention_state=mechanism.state_size,
        )

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Return the state before the first step.

        Args:
          batch_size: the number of sequences, or a tensor with it.
          dtype: the type of cell states and alignments.
        """
        state = self._initial_cell_state
        if state is None:
            state = self._cell.zero_state(batch_size, dtype)
        mechanism = self._attention_mechanism
        start = mechanism.initial_alignments(batch_size, dtype)
        history = tf.TensorArray(dtype, 0, dynamic_size=True, element_shape=start.shape)
        return AttentionWrapperState(
            cell_state=state,
            attention=tf.zeros([batch_size, self._attention_layer_size], dtype),
            time=tf.zeros([], tf.int32),
            alignments=start,
            alignment_history=history if self._alignment_history else (),
            attention_state=mechanism.initial_state(batch_size, dtype),
        )

    def call(self, inputs: Any, state: Any) -> Any:
        """Make one step: the cell, then the attention of its output."""
        inputs = self._cell_input_fn(inputs, state.attention)
        output, cell_state = self._cell(inputs, state.cell_state)
        mechanism = self._attention_mechanism
        alignments, attention_state = mechanism(output, state=state.attention_state)
        attention = tf.matmul(alignments[:, None], mechanism.values)[:, 0]
        if self._attention_layer is not None:
            attention = self._attention_layer(tf.concat([output, attention], 1))
        history = state.alignment_history
        if self._alignment_history:
            history = history.write(state.time, alignments)
        new = AttentionWrapperState(
            cell_state=cell_state,
            attention=attention,
            time=state.time + 1,
            alignments=alignments,
            alignment_history=history,
            attention_state=attention_state,
        )
        return (attention if self._output_attention else output), new


def _side_by_side(inputs: object, attention: object) -> Any:
    return tf.concat([inputs, attention], -1)
