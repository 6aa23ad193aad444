"""Beam search: the best sequences so far go on, side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from hookbridge.contrib.areas.seq2seq.decoders import Decoder
from hookbridge.contrib.areas.seq2seq.helpers import embedding_function


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


def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Repeats each entry of a batch, in a structure of tensors."""
    with tf.name_scope(name or "tile_batch"):
        return tf.nest.map_structure(lambda x: tf.repeat(x, multiplier, 0), t)


def gather_tree(
    step_ids: Any,
    parent_ids: Any,
    max_sequence_lengths: Any,
    end_token: Any,
    name: str | None = None,
) -> Any:
    """The sequences that end in the beams of the last step.

    Args:
      step_ids, parent_ids: what each step chose, `[time, batch, beams]`.
      max_sequence_lengths: the length of the longest sequence, `[batch]`.
      end_token: what stands after the end of a sequence.
    """
    step_ids, parent_ids = (
        tf.convert_to_tensor(step_ids),
        tf.convert_to_tensor(parent_ids),
    )
    shape = tf.shape(step_ids)
    lengths = tf.cast(max_sequence_lengths, tf.int32)
    end = tf.fill(shape[1:], tf.cast(end_token, step_ids.dtype))
    own = tf.tile(tf.range(shape[2])[None], [shape[1], 1])

    def back(carried: Any, step: Any) -> Any:
        _, beams = carried
        time, ids, parents = step
        inside = tf.tile((time < lengths)[:, None], [1, shape[2]])
        chosen = tf.gather(ids, beams, axis=1, batch_dims=1)
        before = tf.gather(parents, beams, axis=1, batch_dims=1)
        return tf.where(inside, chosen, end), tf.where(inside, before, beams)

    steps = (tf.range(shape[0]), step_ids, parent_ids)
    ids, _ = tf.scan(back, steps, (end, own), reverse=True)
    ended = tf.cumsum(tf.cast(tf.equal(ids, end[None]), tf.int32), 0, exclusive=True)
    found = tf.where(ended > 0, tf.zeros_like(ids) + end[None], ids)
    found.set_shape(step_ids.shape)
    return found


class BeamSearchDecoder(Decoder):
    """A cell that goes on with the best sequences of each step.

    Args:
      cell: an `RNNCell`.
      embedding: a function of ids, or the table.
      start_tokens: the first ids, `[batch]`.
      end_token: the id that ends a sequence.
      initial_state: of the cell, after `tile_batch`.
      beam_width: the number of sequences that go on.
      output_layer: a layer over the outputs of the cell, if any.
      length_penalty_weight: how much longer sequences are preferred.
      coverage_penalty_weight: must be 0.
      reorder_tensor_arrays: must be False if the state has a history of alignments.

    Raises:
      NotImplementedError: one of the last two is something else.
    """

    def __init__(
        self,
        cell: Any,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        initial_state: Any,
        beam_width: int,
        output_layer: Callable[[Any], Any] | None = None,
        length_penalty_weight: float = 0.0,
        coverage_penalty_weight: float = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        has_arrays = any(map(_is_array, tf.nest.flatten(initial_state)))
        if coverage_penalty_weight or (has_arrays and reorder_tensor_arrays):
            raise NotImplementedError(
                "Received coverage_penalty_weight or a history of alignments that is "
                "to be reordered; expected neither: hookbridge does not carry these "
                "two parts of tf.contrib.seq2seq.BeamSearchDecoder. Way out: "
                "AttentionWrapper(alignment_history=False)."
            )
        self._cell, self._output_layer = cell, output_layer
        self._embed = embedding_function(embedding)
        self._end_token = tf.convert_to_tensor(end_token, tf.int32)
        self._beams = beam_width
        self._weight = length_penalty_weight
        tokens = tf.convert_to_tensor(start_tokens, tf.int32)
        self._batch_size = tf.size(tokens)
        self._static_batch = tf.get_static_value(self._batch_size)
        self._initial_state = tf.nest.map_structure(self._split_state, initial_state)
        self._start_inputs = self._embed(tf.tile(tokens[:, None], [1, beam_width]))

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def tracks_own_finished(self) -> bool:
        return True

    @property
    def output_size(self) -> Any:
        beams = tf.TensorShape([self._beams])
        return BeamSearchDecoderOutput(beams, beams, beams)

    @property
    def output_dtype(self) -> Any:
        return BeamSearchDecoderOutput(self._dtype, tf.int32, tf.int32)

    @property
    def _dtype(self) -> Any:
        return tf.nest.flatten(self._initial_state)[0].dtype

    def initialize(self, name: str | None = None) -> Any:
        """Of the equal sequences of the first step only one counts."""
        first = tf.one_hot(
            tf.zeros([self._batch_size], tf.int32), self._beams, True, False
        )
        zeros = tf.zeros([self._batch_size, self._beams], self._dtype)
        state = BeamSearchDecoderState(
            cell_state=self._initial_state,
            log_probs=tf.where(first, zeros, zeros - float("inf")),
            finished=tf.logical_not(first),
            lengths=tf.zeros([self._batch_size, self._beams], tf.int64),
            accumulated_attention_probs=(),
        )
        return state.finished, self._start_inputs, state

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> Any:
        with tf.name_scope(name or "BeamSearchDecoderStep"):
            merged = tf.nest.map_structure(self._merge_state, state.cell_state)
            merged_inputs = tf.nest.map_structure(self._merge, inputs)
            outputs, cell_state = self._cell(merged_inputs, merged)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            logits = tf.nest.map_structure(self._split, outputs)
            cell_state = tf.nest.map_structure(self._split_state, cell_state)
            output, new = self._best(logits, cell_state, state)
            new_inputs = self._embed(output.predicted_ids)
        return output, new, new_inputs, new.finished

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> Any:
        longest = tf.cast(tf.reduce_max(final_state.lengths, 1), tf.int32)
        ids, parents = outputs.predicted_ids, outputs.parent_ids
        found = gather_tree(ids, parents, longest, self._end_token)
        return FinalBeamSearchDecoderOutput(found, outputs), final_state

    def _best(self, logits: Any, cell_state: Any, state: Any) -> tuple[Any, Any]:
        """The best continuations of all beams."""
        vocabulary = logits.shape[-1] or tf.shape(logits)[-1]
        logs = tf.nn.log_softmax(logits)
        # A finished sequence can only be followed by the token that ends it.
        end, least = self._end_token, logs.dtype.min
        only = tf.one_hot(end, vocabulary, 0.0, least, dtype=logs.dtype)
        logs = tf.where(state.finished[:, :, None], only[None, None], logs)
        total = state.log_probs[:, :, None] + logs
        # The token that ends a sequence does not count in its length here.
        counts = tf.one_hot(end, vocabulary, 0, 1, dtype=tf.int64)
        alive = tf.cast(tf.logical_not(state.finished), tf.int64)
        lengths = state.lengths[:, :, None] + alive[:, :, None] * counts
        scores = total / self._penalty(lengths, total.dtype)
        flat = [self._batch_size, self._beams * vocabulary]
        best, places = tf.math.top_k(tf.reshape(scores, flat), self._beams)
        best.set_shape([self._static_batch, self._beams])
        ids, parents = places % vocabulary, places // vocabulary

        def of_parents(value: Any) -> Any:
            if _is_array(value) or value.shape.rank == 0:
                return value
            return tf.gather(value, parents, axis=1, batch_dims=1)

        before = of_parents(state.finished)
        new = BeamSearchDecoderState(
            cell_state=tf.nest.map_structure(of_parents, cell_state),
            log_probs=tf.gather(tf.reshape(total, flat), places, batch_dims=1),
            finished=tf.logical_or(before, tf.equal(ids, self._end_token)),
            lengths=of_parents(state.lengths)
            + tf.cast(tf.logical_not(before), tf.int64),
            accumulated_attention_probs=state.accumulated_attention_probs,
        )
        return BeamSearchDecoderOutput(best, ids, parents), new

    def _penalty(self, lengths: Any, dtype: Any) -> Any:
        weight = tf.convert_to_tensor(self._weight, dtype)
        return ((5.0 + tf.cast(lengths, dtype)) / 6.0) ** weight

    def _split(self, value: Any) -> Any:
        """`[batch * beams, ...]` as `[batch, beams, ...]`."""
        rest = tf.shape(value)[1:]
        shape = tf.concat([[self._batch_size, self._beams], rest], 0)
        found = tf.reshape(value, shape)
        found.set_shape([self._static_batch, self._beams, *value.shape[1:]])
        return found

    def _merge(self, value: Any) -> Any:
        """`[batch, beams, ...]` as `[batch * beams, ...]`."""
        rest = tf.shape(value)[2:]
        found = tf.reshape(value, tf.concat([[-1], rest], 0))
        batch = self._static_batch and self._static_batch * self._beams
        found.set_shape([batch, *value.shape[2:]])
        return found

    def _split_state(self, value: Any) -> Any:
        is_whole = _is_array(value) or value.shape.rank == 0
        return value if is_whole else self._split(value)

    def _merge_state(self, value: Any) -> Any:
        is_whole = _is_array(value) or value.shape.rank == 0
        return value if is_whole else self._merge(value)


def _is_array(value: Any) -> bool:
    return isinstance(value, tf.TensorArray)
