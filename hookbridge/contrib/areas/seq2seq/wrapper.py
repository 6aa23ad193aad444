"""A cell with attention: `AttentionWrapper` and its state."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf


class AttentionWrapperState(NamedTuple):
    """The state of an `AttentionWrapper`.

    Attributes:
      cell_state: the state of the cell.
      attention: the attention of the last step.
      time: the number of steps.
      alignments: of the last step; a tuple if there are several mechanisms.
      alignment_history: the alignments of all steps, or ().
      attention_state: the state of the mechanisms.
    """

    cell_state: Any
    attention: Any
    time: Any
    alignments: Any
    alignment_history: Any
    attention_state: Any

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """A copy with some fields replaced, in their static shapes.

        Raises:
          ValueError: a new value has another shape.
        """

        def shaped(old: Any, new: Any) -> Any:
            if not isinstance(old, tf.Tensor) or not isinstance(new, tf.Tensor):
                return new
            if not old.shape.is_compatible_with(new.shape):
                raise ValueError(
                    f"Received a value of shape {new.shape}; expected {old.shape}, "
                    "the shape of the field that it replaces."
                )
            new.set_shape(old.shape)
            return new

        made = self._replace(**kwargs)
        tf.nest.assert_same_structure(self, made)
        both = zip(tf.nest.flatten(self), tf.nest.flatten(made), strict=True)
        parts = [shaped(old, new) for old, new in both]
        return tf.nest.pack_sequence_as(made, parts)  # type: ignore[no-any-return]


@functools.cache
def _attention_wrapper() -> Any:
    rnn_cell: Any = tf.compat.v1.nn.rnn_cell

    class AttentionWrapper(rnn_cell.RNNCell):  # type: ignore[misc]
        """A cell whose inputs and outputs have attention to a memory.

        Args:
          cell: an `RNNCell`.
          attention_mechanism: a mechanism, or several.
          attention_layer_size: the size of the layer over output and context, one for
            each mechanism; None takes the context itself as the attention.
          alignment_history: whether the state has the alignments of all steps.
          cell_input_fn: `(inputs, attention) -> inputs`; both side by side by default.
          output_attention: whether the output is the attention, not the cell's output.
          initial_cell_state: what `zero_state` has for the cell.
          name: of the layer.
          attention_layer: layers in the place of `attention_layer_size`.
          attention_fn: `(mechanism, cell_output, state, layer) -> (attention,
            alignments, state)` in the place of the usual computation.
          dtype: of the attention layers.
        """

        def __init__(
            self,
            cell: Any,
            attention_mechanism: Any,
            attention_layer_size: Any = None,
            alignment_history: bool = False,
            cell_input_fn: Callable[[Any, Any], Any] | None = None,
            output_attention: bool = True,
            initial_cell_state: Any = None,
            name: str | None = None,
            attention_layer: Any = None,
            attention_fn: Callable[..., Any] | None = None,
            dtype: Any = None,
        ) -> None:
            super().__init__(name=name)
            if attention_layer_size is not None and attention_layer is not None:
                raise ValueError(
                    "Received attention_layer_size and attention_layer; expected one."
                )
            self._is_multi = isinstance(attention_mechanism, list | tuple)
            mechanisms = tuple(_listed(attention_mechanism))
            layers: list[Any] = [None] * len(mechanisms)
            if attention_layer_size is not None:
                dense = tf.compat.v1.layers.Dense
                layers = [
                    dense(size, name="attention_layer", use_bias=False, dtype=dtype)
                    for size in _listed(attention_layer_size)
                ]
            elif attention_layer is not None:
                layers = _listed(attention_layer)
            if len(layers) != len(mechanisms):
                raise ValueError(
                    f"Received {len(layers)} attention layers for {len(mechanisms)} "
                    "mechanisms; expected one for each."
                )
            self._cell = cell
            self._mechanisms = mechanisms
            self._attention_layers = layers
            self._has_history = alignment_history
            self._cell_input_fn = cell_input_fn or _side_by_side
            self._output_attention = output_attention
            self._attention_fn = attention_fn or _attention
            self._initial_cell_state = initial_cell_state
            sizes = map(self._size, mechanisms, layers)
            self._attention_size = sum(sizes)

        def _size(self, mechanism: Any, layer: Any) -> int:
            """The size of the attention of one mechanism."""
            depth = int(mechanism.values.shape[-1])
            if layer is None:
                return depth
            shape = layer.compute_output_shape([None, self._cell.output_size + depth])
            return int(tf.TensorShape(shape)[-1])

        @property
        def output_size(self) -> Any:
            """The size of the outputs."""
            if self._output_attention:
                return self._attention_size
            return self._cell.output_size

        @property
        def state_size(self) -> Any:
            """The sizes of the state."""
            sizes = [m.alignments_size for m in self._mechanisms]
            return AttentionWrapperState(
                cell_state=self._cell.state_size,
                attention=self._attention_size,
                time=tf.TensorShape([]),
                alignments=self._item(sizes),
                alignment_history=self._item(sizes if self._has_history else []),
                attention_state=self._item([m.state_size for m in self._mechanisms]),
            )

        def zero_state(self, batch_size: Any, dtype: Any) -> Any:
            """The state before the first step."""
            state = self._initial_cell_state
            if state is None:
                state = self._cell.zero_state(batch_size, dtype)
            checks = [
                tf.compat.v1.assert_equal(
                    batch_size,
                    mechanism.batch_size,
                    message="The memory of the attention has another batch size than "
                    "the state. BeamSearchDecoder needs tile_batch for both.",
                )
                for mechanism in self._mechanisms
            ]
            with tf.control_dependencies(
                [check for check in checks if check is not None]
            ):
                state = tf.nest.map_structure(tf.identity, state)
            starts = [m.initial_alignments(batch_size, dtype) for m in self._mechanisms]
            histories = [
                tf.TensorArray(dtype, 0, dynamic_size=True, element_shape=start.shape)
                for start in starts
            ]
            return AttentionWrapperState(
                cell_state=state,
                attention=tf.zeros(tf.stack([batch_size, self._attention_size]), dtype),
                time=tf.zeros([], tf.int32),
                alignments=self._item(starts),
                alignment_history=self._item(histories if self._has_history else []),
                attention_state=self._item(
                    [m.initial_state(batch_size, dtype) for m in self._mechanisms]
                ),
            )

        def call(self, inputs: Any, state: Any) -> Any:
            """One step: the cell, then the attention of its output."""
            if not isinstance(state, AttentionWrapperState):
                raise TypeError(
                    f"Received {state!r}; expected an `AttentionWrapperState`."
                )
            inputs = self._cell_input_fn(inputs, state.attention)
            output, cell_state = self._cell(inputs, state.cell_state)
            states = (
                _listed(state.attention_state)
                if self._is_multi
                else [state.attention_state]
            )
            attentions, alignments, new_states = [], [], []
            for mechanism, layer, before in zip(
                self._mechanisms, self._attention_layers, states, strict=True
            ):
                attention, aligned, after = self._attention_fn(
                    mechanism, output, before, layer
                )
                attentions.append(attention)
                alignments.append(aligned)
                new_states.append(after)
            histories = [
                history.write(state.time, aligned)
                for history, aligned in zip(
                    _listed(state.alignment_history), alignments, strict=False
                )
            ]
            attention = tf.concat(attentions, 1)
            new = AttentionWrapperState(
                cell_state=cell_state,
                attention=attention,
                time=state.time + 1,
                alignments=self._item(alignments),
                alignment_history=self._item(histories),
                attention_state=self._item(new_states),
            )
            return (attention if self._output_attention else output), new

        def _item(self, parts: list[Any]) -> Any:
            """One part, or a tuple of the parts of several mechanisms."""
            return parts[0] if parts and not self._is_multi else tuple(parts)

    AttentionWrapper.__qualname__ = "AttentionWrapper"
    return AttentionWrapper


def __getattr__(name: str) -> Any:
    # The class derives from a layer of Keras 2: Keras is loaded only if it is needed.
    if name == "AttentionWrapper":
        return _attention_wrapper()
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _side_by_side(inputs: Any, attention: Any) -> Any:
    return tf.concat([inputs, attention], -1)


def _attention(mechanism: Any, output: Any, state: Any, layer: Any) -> Any:
    """The context of a cell's output in the memory, after the layer."""
    alignments, new_state = mechanism(output, state=state)
    attention = tf.matmul(alignments[:, None], mechanism.values)[:, 0]
    if layer is not None:
        attention = layer(tf.concat([output, attention], 1))
    return attention, alignments, new_state
