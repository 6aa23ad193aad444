"""Beam search: the best sequences so far go on, side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from hookbridge.contrib.areas.seq2seq.decoders import Decoder
from hookbridge.contrib.areas.seq2seq.helpers import embedding_function
from hookbridge.contrib.areas.seq2seq.tensors import dimensions, map_batched


class BeamSearchDecoderState(NamedTuple):
    """The state of a beam search; all of it is `[batch, beams, ...]`."""

    cell_state: Any
    log_probs: Any
    finished: Any
    lengths: Any
    accumulated_attention_probs: Any


class BeamSearchDecoderOutput(NamedTuple):
    """What each step chose; the ids of a beam's past are those of its parents."""

    scores: Any
    predicted_ids: Any
    parent_ids: Any


class FinalBeamSearchDecoderOutput(NamedTuple):
    """The sequences, `[batch, time, beams]`, the best one first."""

    predicted_ids: Any
    beam_search_decoder_output: Any


def tile_batch(t: object, multiplier: int, name: str | None = None) -> Any:
    """Repeat each entry of a batch, in a structure of tensors."""
    with tf.name_scope(name or "tile_batch"):
        return tf.nest.map_structure(lambda x: tf.repeat(x, multiplier, 0), t)


def gather_tree(
    step_ids: Any,
    parent_ids: Any,
    max_sequence_lengths: Any,
    end_token: Any,
    name: str | None = None,
) -> Any:
    """Return the sequences `[time, batch, beams]` that end in the last beams.

    `end_token` stands after the end of a sequence, and after the longest of a batch.
    """
    step_ids = tf.convert_to_tensor(step_ids)
    times, _, beams = dimensions(step_ids)
    end = tf.zeros_like(step_ids[0]) + tf.cast(end_token, step_ids.dtype)
    beam_numbers = tf.zeros_like(step_ids[0]) + tf.range(beams)

    def back(carried: Any, step: Any) -> Any:
        time, ids, parents = step
        inside = (time < tf.cast(max_sequence_lengths, tf.int32))[:, None]
        chosen = tf.gather(ids, carried[1], axis=1, batch_dims=1)
        before = tf.gather(parents, carried[1], axis=1, batch_dims=1)
        return tf.where(inside, chosen, end), tf.where(inside, before, carried[1])

    steps = (tf.range(times), step_ids, tf.convert_to_tensor(parent_ids))
    ids, _ = tf.scan(back, steps, (end, beam_numbers), reverse=True)
    ended = tf.cumsum(tf.cast(tf.equal(ids, end), tf.int32), 0, exclusive=True)
    return tf.ensure_shape(tf.where(ended > 0, end, ids), step_ids.shape)


class BeamSearchDecoder(Decoder):
    """A cell that goes on with the best sequences of each step.

    `initial_state` comes from `tile_batch`. Longer sequences are preferred by
    `length_penalty_weight`.
    """

    def __init__(
        self,
        cell: Any,
        embedding: object,
        start_tokens: object,
        end_token: object,
        initial_state: object,
        beam_width: int,
        output_layer: Callable[[Any], Any] | None = None,
        length_penalty_weight: float = 0.0,
        coverage_penalty_weight: float = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        state = tf.nest.flatten(initial_state)
        has_arrays = any(isinstance(part, tf.TensorArray) for part in state)
        if coverage_penalty_weight or (has_arrays and reorder_tensor_arrays):
            raise NotImplementedError(
                "Received coverage_penalty_weight, or a history of alignments to "
                "reorder; expected neither: hookbridge does not support these two "
                "parts of tf.contrib.seq2seq.BeamSearchDecoder. Use "
                "AttentionWrapper(alignment_history=False) instead."
            )
        self._cell, self._output_layer = cell, output_layer
        self._embedding_fn = embedding_function(embedding)
        self._start_tokens = tf.convert_to_tensor(start_tokens, tf.int32)
        self._end_token = tf.convert_to_tensor(end_token, tf.int32)
        self._beam_width = beam_width
        self._length_penalty_weight = length_penalty_weight
        [self._batch_size] = dimensions(self._start_tokens)
        self._initial_cell_state = map_batched(self._split, initial_state)
        self._start_inputs = self._embedding_fn(
            tf.tile(self._start_tokens[:, None], [1, beam_width])
        )

    @property
    def batch_size(self) -> Any:
        """The number of sequences, a scalar tensor."""
        return tf.convert_to_tensor(self._batch_size)

    @property
    def tracks_own_finished(self) -> bool:
        return True

    @property
    def output_size(self) -> Any:
        """The shapes of the outputs of one step, without the batch."""
        beams = tf.TensorShape([self._beam_width])
        return BeamSearchDecoderOutput(beams, beams, beams)

    @property
    def output_dtype(self) -> Any:
        """The types of the outputs."""
        return BeamSearchDecoderOutput(self._dtype, tf.int32, tf.int32)

    @property
    def _dtype(self) -> Any:
        return tf.nest.flatten(self._initial_cell_state)[0].dtype

    def initialize(self, name: str | None = None) -> Any:
        """Return the first state, in which only one of the equal sequences counts."""
        beams = [self._batch_size, self._beam_width]
        zeros = tf.zeros(beams, self._dtype)
        is_other = tf.zeros(beams, tf.int32) + tf.range(self._beam_width) > 0
        state = BeamSearchDecoderState(
            cell_state=self._initial_cell_state,
            log_probs=tf.where(is_other, zeros - float("inf"), zeros),
            finished=is_other,
            lengths=tf.zeros(beams, tf.int64),
            accumulated_attention_probs=(),
        )
        return state.finished, self._start_inputs, state

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> Any:
        with tf.name_scope(name or "BeamSearchDecoderStep"):
            outputs, cell_state = self._cell(
                map_batched(_merged, inputs), map_batched(_merged, state.cell_state)
            )
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            cell_state = map_batched(self._split, cell_state)
            output, new = self._best(self._split(outputs), cell_state, state)
            new_inputs = self._embedding_fn(output.predicted_ids)
        return output, new, new_inputs, new.finished

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> Any:
        longest = tf.reduce_max(final_state.lengths, 1)
        ids, parents = outputs.predicted_ids, outputs.parent_ids
        beams = gather_tree(ids, parents, longest, self._end_token)
        return FinalBeamSearchDecoderOutput(beams, outputs), final_state

    def _best(self, logits: Any, cell_state: Any, state: Any) -> tuple[Any, Any]:
        """Return the best continuations of all beams."""
        batch, beams, vocabulary = dimensions(logits)
        logs = tf.nn.log_softmax(logits)
        # A finished sequence can only be followed by the token that ends it.
        end = self._end_token
        only = tf.one_hot(end, vocabulary, 0.0, logs.dtype.min, dtype=logs.dtype)
        logs = tf.where(state.finished[:, :, None], only, logs)
        total = state.log_probs[:, :, None] + logs
        # The token that ends a sequence does not count in its length here.
        counts = tf.one_hot(end, vocabulary, 0, 1, dtype=tf.int64)
        alive = tf.cast(tf.logical_not(state.finished), tf.int64)
        lengths = state.lengths[:, :, None] + alive[:, :, None] * counts
        penalty = (5.0 + tf.cast(lengths, total.dtype)) / 6.0
        scores = total / penalty ** tf.cast(self._length_penalty_weight, total.dtype)
        flat = [batch, beams * vocabulary]
        best, places = tf.math.top_k(tf.reshape(scores, flat), beams)
        ids, parents = places % vocabulary, places // vocabulary

        def of_parents(value: object) -> Any:
            return tf.gather(value, parents, axis=1, batch_dims=1)

        before = of_parents(state.finished)
        new = BeamSearchDecoderState(
            cell_state=map_batched(of_parents, cell_state),
            log_probs=tf.gather(tf.reshape(total, flat), places, batch_dims=1),
            finished=tf.logical_or(before, tf.equal(ids, end)),
            lengths=of_parents(state.lengths + alive),
            accumulated_attention_probs=state.accumulated_attention_probs,
        )
        return BeamSearchDecoderOutput(best, ids, parents), new

    def _split(self, value: Any) -> Any:
        """Return `[batch * beams, ...]` as `[batch, beams, ...]`."""
        inner_shape = dimensions(value)[1:]
        return tf.reshape(value, [self._batch_size, self._beam_width, *inner_shape])


def _merged(value: Any) -> Any:
    """Return `[batch, beams, ...]` as `[batch * beams, ...]`."""
    batch, beams, *inner_shape = dimensions(value)
    return tf.reshape(value, [batch * beams, *inner_shape])
