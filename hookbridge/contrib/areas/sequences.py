"""`tf.contrib.crf`, and the loss of `tf.contrib.seq2seq`, in TensorFlow's own ops.

Shapes: inputs and potentials are `[batch, time, tags]`, indices `[batch, time]`,
lengths `[batch]` and transitions `[tags, tags]`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf


def crf_log_likelihood(
    inputs: Any,
    tag_indices: object,
    sequence_lengths: object,
    transition_params: object = None,
) -> tuple[Any, Any]:
    """Return the log-likelihood of each sequence of tags, and the transitions.

    The transitions are a new variable, `transitions`, if none are given.
    """
    if transition_params is None:
        tags = tf.TensorShape(inputs.shape).as_list()[2]
        transition_params = tf.compat.v1.get_variable("transitions", [tags, tags])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    norm = crf_log_norm(inputs, sequence_lengths, transition_params)
    return score - norm, transition_params


def crf_sequence_score(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any
) -> Any:
    """Return the score of each sequence of tags, not normalised."""
    mask = tf.sequence_mask(sequence_lengths, tf.shape(tag_indices)[1], inputs.dtype)
    unary = tf.gather(inputs, tag_indices, axis=2, batch_dims=2) * mask
    pairs = tf.stack([tag_indices[:, :-1], tag_indices[:, 1:]], 2)
    binary = tf.gather_nd(transition_params, pairs) * mask[:, 1:]
    return tf.reduce_sum(unary, 1) + tf.reduce_sum(binary, 1)


def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """Return the logarithm of the sum over all sequences of tags."""

    def forward(alphas: Any, step: Any) -> Any:
        time, logits = step
        scores = alphas[:, :, None] + transition_params[None]
        new = logits + tf.reduce_logsumexp(scores, 1)
        return tf.where((time < sequence_lengths)[:, None], new, alphas)

    logits = tf.transpose(inputs, [1, 0, 2])
    times = tf.range(1, tf.shape(logits)[0])
    times = tf.cast(times, sequence_lengths.dtype)
    alphas = tf.foldl(forward, (times, logits[1:]), initializer=logits[0])
    norm = tf.reduce_logsumexp(alphas, 1)
    return tf.where(sequence_lengths <= 0, tf.zeros_like(norm), norm)


def crf_decode(
    potentials: Any, transition_params: Any, sequence_length: Any
) -> tuple[Any, Any]:
    """Return the best sequences of tags, int32, and their scores."""

    def forward(carried: Any, step: Any) -> Any:
        state, _ = carried
        time, logits = step
        scores = state[:, :, None] + transition_params[None]
        alive = ((time > 0) & (time < sequence_length))[:, None]
        best = tf.argmax(scores, 1, output_type=tf.int32)
        new = logits + tf.reduce_max(scores, 1)
        return tf.where(alive, new, state), tf.where(alive, best, stay)

    def backward(tags: object, before: object) -> Any:
        return tf.gather(before, tags, axis=1, batch_dims=1)

    logits = tf.transpose(potentials, [1, 0, 2])
    shape = tf.shape(logits)
    # After the end of a sequence each tag is its own predecessor.
    stay = tf.tile(tf.range(shape[2])[None], [shape[1], 1])
    times = tf.cast(tf.range(shape[0]), sequence_length.dtype)
    states, befores = tf.scan(forward, (times, logits), (logits[0], stay))
    final_scores = states[-1]
    tags = tf.argmax(final_scores, 1, output_type=tf.int32)
    # The tag before the last step, the step before that, and so on to the first.
    earlier = tf.scan(backward, befores, tags, reverse=True)[1:]
    tags = tf.transpose(tf.concat([earlier, tags[None]], 0))
    mask = tf.sequence_mask(tf.maximum(sequence_length, 1), shape[0], tf.int32)
    return tags * mask, tf.reduce_max(final_scores, 1)


def viterbi_decode(score: Any, transition_params: Any) -> tuple[list[Any], Any]:
    """Return the best tags of one sequence `[time, tags]`, outside of TensorFlow."""
    best = np.zeros_like(score)
    before = np.zeros_like(score, dtype=np.int32)
    best[0] = score[0]
    for time in range(1, score.shape[0]):
        scores = best[time - 1][:, None] + transition_params
        best[time] = score[time] + np.max(scores, 0)
        before[time] = np.argmax(scores, 0)
    tags = [np.argmax(best[-1])]
    for row in reversed(before[1:]):
        tags.append(row[tags[-1]])
    return tags[::-1], np.max(best[-1])


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Any = None,
    name: str | None = None,
) -> Any:
    """`tf.contrib.seq2seq.sequence_loss`: the weighted cross-entropy of sequences."""
    with tf.name_scope(name or "sequence_loss"):
        loss = softmax_loss_function or tf.nn.sparse_softmax_cross_entropy_with_logits
        flat = tf.reshape(logits, [-1, tf.shape(logits)[2]])
        losses = loss(labels=tf.reshape(targets, [-1]), logits=flat)
        losses = tf.reshape(losses, tf.shape(logits)[:2]) * weights
        axes = [0] * average_across_batch + [1] * average_across_timesteps
        counted = weights
        if not axes:
            axes = [0] * sum_over_batch + [1] * sum_over_timesteps
            counted = tf.cast(tf.not_equal(weights, 0), losses.dtype)
        if not axes:
            return losses
        total, size = tf.reduce_sum(losses, axes), tf.reduce_sum(counted, axes)
        return tf.math.divide_no_nan(total, size)
