"""A decoder makes one step; `dynamic_decode` makes all of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from hookbridge.contrib.areas.seq2seq.helpers import swapped


class Decoder:
    """The base class of all decoders."""

    @property
    def batch_size(self) -> Any:
        """The number of sequences, a scalar tensor."""
        raise NotImplementedError("batch_size")

    @property
    def output_size(self) -> Any:
        """The shapes of the outputs of one step, without the batch."""
        raise NotImplementedError("output_size")

    @property
    def output_dtype(self) -> Any:
        """The types of the outputs."""
        raise NotImplementedError("output_dtype")

    @property
    def tracks_own_finished(self) -> bool:
        """Whether a finished sequence may go on: beams change their places."""
        return False

    def initialize(self, name: str | None = None) -> Any:
        """`(finished, inputs, state)` of the first step."""
        raise NotImplementedError("initialize")

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> Any:
        """`(outputs, state, inputs, finished)` after a step."""
        raise NotImplementedError("step")

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> Any:
        """`(outputs, state)` of all steps; outputs are `[time, batch, ...]`."""
        raise NotImplementedError("finalize")


class BasicDecoderOutput(NamedTuple):
    """What `BasicDecoder` makes in each step."""

    rnn_output: Any
    sample_id: Any


class BasicDecoder(Decoder):
    """A cell whose next input comes from a helper.

    Args:
      cell: an `RNNCell`.
      helper: decides on samples and next inputs.
      initial_state: the state of the cell.
      output_layer: a layer over the outputs of the cell, if any.
    """

    def __init__(
        self, cell: Any, helper: Any, initial_state: Any, output_layer: Any = None
    ) -> None:
        self._cell = cell
        self._helper = helper
        self._initial_state = initial_state
        self._output_layer = output_layer

    @property
    def batch_size(self) -> Any:
        return self._helper.batch_size

    @property
    def output_size(self) -> Any:
        size = layer_output_size(self._cell.output_size, self._output_layer)
        return BasicDecoderOutput(size, self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> Any:
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


def layer_output_size(size: Any, layer: Any) -> Any:
    """The size of a cell's outputs after a layer, if there is one."""
    if layer is None:
        return size
    full = layer.compute_output_shape(tf.TensorShape([None]).concatenate(size))
    return tf.TensorShape(full)[1:]


def dynamic_decode(
    decoder: Any,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
    **kwargs: Any,
) -> tuple[Any, Any, Any]:
    """Decodes until all sequences are finished.

    Args:
      decoder: a `Decoder`.
      output_time_major: whether outputs are `[time, batch, ...]`.
      impute_finished: whether the outputs of a finished sequence are zeros and its
        state stays.
      maximum_iterations: the largest number of steps.
      parallel_iterations, swap_memory: as in `tf.while_loop`.
      scope: of the variables; `decoder` by default.

    Returns:
      Outputs, the final state, and the lengths of the sequences.

    Raises:
      TypeError: it is no `Decoder`, or there are other arguments.
    """
    if not isinstance(decoder, Decoder) or kwargs:
        raise TypeError(
            f"Received {decoder!r} and {sorted(kwargs)}; expected a `Decoder` and "
            "the arguments of TensorFlow 1.15."
        )
    with tf.compat.v1.variable_scope(scope, "decoder"):
        finished, inputs, state = decoder.initialize()
        limit = None
        if maximum_iterations is not None:
            limit = tf.convert_to_tensor(maximum_iterations, tf.int32)
            finished = tf.logical_or(finished, limit <= 0)
        zeros = tf.nest.map_structure(
            lambda size, dtype: tf.zeros(_full(decoder.batch_size, size), dtype),
            decoder.output_size,
            decoder.output_dtype,
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
            tf.nest.map_structure(_shaped, state, new_state)
            arrays = tf.nest.map_structure(
                lambda array, value: array.write(time, value), arrays, outputs
            )
            reached = tf.fill(tf.shape(lengths), time + 1)
            lengths = tf.where(finished, lengths, reached)
            return time + 1, arrays, new_state, new_inputs, done, lengths

        static = tf.TensorShape([tf.get_static_value(decoder.batch_size)])
        arrays = tf.nest.map_structure(
            lambda size, dtype: tf.TensorArray(
                dtype, 0, dynamic_size=True, element_shape=static.concatenate(size)
            ),
            decoder.output_size,
            decoder.output_dtype,
        )
        _, arrays, state, _, _, lengths = tf.compat.v1.while_loop(
            lambda *loop: tf.logical_not(tf.reduce_all(loop[4])),
            body,
            (
                tf.constant(0),
                arrays,
                state,
                inputs,
                finished,
                tf.zeros_like(finished, tf.int32),
            ),
            parallel_iterations=parallel_iterations,
            swap_memory=swap_memory,
        )
        outputs = tf.nest.map_structure(lambda array: array.stack(), arrays)
        try:
            outputs, state = decoder.finalize(outputs, state, lengths)
        except NotImplementedError:
            pass
        if not output_time_major:
            outputs = tf.nest.map_structure(swapped, outputs)
    return outputs, state, lengths


def _full(batch_size: Any, size: Any) -> Any:
    shape = tf.TensorShape(size).as_list()
    return tf.concat([[batch_size], tf.constant(shape, tf.int32)], 0)


def _kept(finished: Any, old: Any, new: Any) -> Any:
    """The old values where sequences are finished, the new ones elsewhere."""

    def one(before: Any, after: Any) -> Any:
        if isinstance(after, tf.TensorArray) or after.shape.rank == 0:
            return after
        return tf.compat.v1.where(finished, before, after)

    return tf.nest.map_structure(one, old, new)


def _shaped(before: Any, after: Any) -> None:
    """A loop's variable keeps its static shape."""
    if not isinstance(after, tf.TensorArray):
        after.set_shape(before.shape)
