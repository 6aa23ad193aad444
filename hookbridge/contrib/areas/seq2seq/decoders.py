"""A decoder makes one step; `dynamic_decode` makes all of them."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import tensorflow as tf

from hookbridge.contrib.areas.cells import transpose_batch_time
from hookbridge.contrib.areas.seq2seq.tensors import map_batched


class Decoder:
    """The base class of all decoders, also of those of a program.

    A decoder has `batch_size`, `output_size` and `output_dtype` of one step,
    `initialize() -> (finished, inputs, state)` and `step(time, inputs, state) ->
    (outputs, state, inputs, finished)`.
    """

    @property
    def tracks_own_finished(self) -> bool:
        """Return whether a finished sequence may go on: beams change their places."""
        return False

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> Any:
        """Return `(outputs, state)` of all steps.

        Args:
          outputs: what the steps have returned, `[time, batch, ...]`.
          final_state: the state after the last step.
          sequence_lengths: `[batch]`, the number of steps until each one was finished.
        """
        raise NotImplementedError("finalize")


class BasicDecoderOutput(NamedTuple):
    """What `BasicDecoder` makes in each step."""

    rnn_output: Any
    sample_id: Any


class BasicDecoder(Decoder):
    """A cell, with a layer over its outputs; its next input comes from a helper."""

    def __init__(
        self, cell: Any, helper: Any, initial_state: Any, output_layer: Any = None
    ) -> None:
        self._cell = cell
        self._helper = helper
        self._initial_state = initial_state
        self._output_layer = output_layer

    @property
    def batch_size(self) -> Any:
        """The number of sequences, a scalar tensor."""
        return self._helper.batch_size

    @property
    def output_size(self) -> Any:
        """The shapes of the outputs of one step, without the batch."""
        size = self._cell.output_size
        if self._output_layer is not None:
            inputs = tf.TensorShape([None]).concatenate(size)
            size = tf.TensorShape(self._output_layer.compute_output_shape(inputs))[1:]
        return BasicDecoderOutput(size, self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> Any:
        """The types of the outputs."""
        dtype = tf.nest.flatten(self._initial_state)[0].dtype
        of_cell = tf.nest.map_structure(lambda _: dtype, self._cell.output_size)
        return BasicDecoderOutput(of_cell, self._helper.sample_ids_dtype)

    def initialize(self, name: str | None = None) -> Any:
        return (*self._helper.initialize(), self._initial_state)

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> Any:
        with tf.name_scope(name or "BasicDecoderStep"):
            outputs, state = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            ids = self._helper.sample(time=time, outputs=outputs, state=state)
            finished, inputs, state = self._helper.next_inputs(
                time=time, outputs=outputs, state=state, sample_ids=ids
            )
        return BasicDecoderOutput(outputs, ids), state, inputs, finished


def dynamic_decode(
    decoder: Any,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """Decode until all sequences are finished: outputs, the state and lengths.

    With `impute_finished` the outputs of a finished sequence are zeros, and its state
    stays.
    """
    with tf.compat.v1.variable_scope(scope, "decoder"):
        finished, inputs, state = decoder.initialize()
        limit = None
        if maximum_iterations is not None:
            limit = tf.convert_to_tensor(maximum_iterations, tf.int32)
            finished = tf.logical_or(finished, limit <= 0)
        sizes = decoder.output_size, decoder.output_dtype
        zeros = tf.nest.map_structure(
            lambda size, dtype: tf.zeros(
                [decoder.batch_size, *tf.TensorShape(size).as_list()], dtype
            ),
            *sizes,
        )
        batch = tf.TensorShape([tf.get_static_value(decoder.batch_size)])
        arrays = tf.nest.map_structure(
            lambda size, dtype: tf.TensorArray(
                dtype, 0, dynamic_size=True, element_shape=batch.concatenate(size)
            ),
            *sizes,
        )

        def body(
            time: Any, arrays: Any, state: Any, inputs: Any, finished: Any, lengths: Any
        ) -> Any:
            outputs, new_state, new_inputs, done = decoder.step(time, inputs, state)
            if not decoder.tracks_own_finished:
                done = tf.logical_or(done, finished)
            if limit is not None:
                done = tf.logical_or(done, time + 1 >= limit)
            if impute_finished:
                outputs = _kept(finished, zeros, outputs)
                new_state = _kept(finished, state, new_state)
            map_batched(
                lambda after, before: after.set_shape(before.shape), new_state, state
            )
            arrays = tf.nest.map_structure(
                lambda array, value: array.write(time, value), arrays, outputs
            )
            reached = tf.fill(tf.shape(lengths), time + 1)
            lengths = tf.where(finished, lengths, reached)
            return time + 1, arrays, new_state, new_inputs, done, lengths

        lengths = tf.zeros_like(finished, tf.int32)
        _, arrays, state, _, _, lengths = tf.compat.v1.while_loop(
            lambda *loop: tf.logical_not(tf.reduce_all(loop[4])),
            body,
            (tf.constant(0), arrays, state, inputs, finished, lengths),
            parallel_iterations=parallel_iterations,
            swap_memory=swap_memory,
        )
        outputs = tf.nest.map_structure(lambda array: array.stack(), arrays)
        with contextlib.suppress(NotImplementedError):
            outputs, state = decoder.finalize(outputs, state, lengths)
        if not output_time_major:
            outputs = tf.nest.map_structure(transpose_batch_time, outputs)
    return outputs, state, lengths


def _kept(finished: object, old: object, new: object) -> Any:
    """Return the old values where sequences are finished, the new ones elsewhere."""
    return map_batched(
        lambda after, before: tf.compat.v1.where(finished, before, after), new, old
    )
