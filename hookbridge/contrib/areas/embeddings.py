"""Functions of `tf.contrib.layers` and `tf.contrib.legacy_seq2seq` for sequences."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: object = None,
    regularizer: object = None,
    trainable: bool = True,
    scope: object = None,
    reuse: object = None,
) -> Any:
    """`tf.contrib.layers.embed_sequence`: the rows of a variable `embeddings`."""
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError(
            "Must specify vocab size and embedding dimension when not reusing. Got "
            f"vocab_size={vocab_size} and embed_dim={embed_dim}"
        )
    with tf.compat.v1.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        keys = tf.compat.v1.GraphKeys
        embeddings = tf.compat.v1.get_variable(
            "embeddings",
            None if None in (vocab_size, embed_dim) else [vocab_size, embed_dim],
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
            collections=[keys.GLOBAL_VARIABLES, keys.MODEL_VARIABLES],
        )
        if not unique:
            return tf.nn.embedding_lookup(embeddings, ids)
        unique_ids, places = tf.unique(tf.reshape(ids, [-1]))
        rows = tf.gather(tf.nn.embedding_lookup(embeddings, unique_ids), places)
        shape = tf.concat([tf.shape(ids), tf.shape(embeddings)[1:]], 0)
        result = tf.reshape(rows, shape)
        result.set_shape(ids.shape.concatenate(embeddings.shape[1:]))
        return result


def rnn_decoder(
    decoder_inputs: list[Any],
    initial_state: object,
    cell: Any,
    loop_function: Any = None,
    scope: object = None,
) -> tuple[list[Any], Any]:
    """`tf.contrib.legacy_seq2seq.rnn_decoder`: the outputs of all steps, and the state.

    From the second step on `loop_function`, if there is one, makes the input of the
    output before.
    """
    outputs: list[Any] = []
    state = initial_state
    with tf.compat.v1.variable_scope(scope or "rnn_decoder") as decoder_scope:
        for number, decoder_input in enumerate(decoder_inputs):
            if number and loop_function is not None:
                with tf.compat.v1.variable_scope("loop_function", reuse=True):
                    decoder_input = loop_function(outputs[-1], number)
            if number:
                decoder_scope.reuse_variables()
            output, state = cell(decoder_input, state)
            outputs.append(output)
    return outputs, state


def sequence_loss_by_example(
    logits: list[Any],
    targets: list[Any],
    weights: list[Any],
    average_across_timesteps: bool = True,
    softmax_loss_function: Any = None,
    name: str | None = None,
) -> Any:
    """`tf.contrib.legacy_seq2seq.sequence_loss_by_example`, `[batch]`.

    The lists have an item for each step: logits `[batch, symbols]`, the others
    `[batch]`.
    """
    if not len(targets) == len(logits) == len(weights):
        raise ValueError(
            "Lengths of logits, weights, and targets must be the same "
            f"{len(logits)}, {len(weights)}, {len(targets)}."
        )
    plain = softmax_loss_function is None
    loss = softmax_loss_function or tf.nn.sparse_softmax_cross_entropy_with_logits
    with tf.name_scope(name or "sequence_loss_by_example"):
        losses = [
            loss(labels=tf.reshape(target, [-1]) if plain else target, logits=logit)
            * weight
            for logit, target, weight in zip(logits, targets, weights, strict=True)
        ]
        total = tf.add_n(losses)
        # The small number avoids a division by zero.
        return (
            total / (tf.add_n(weights) + 1e-12) if average_across_timesteps else total
        )


def sequence_loss(
    logits: list[Any],
    targets: list[Any],
    weights: list[Any],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: object = None,
    name: str | None = None,
) -> Any:
    """`tf.contrib.legacy_seq2seq.sequence_loss`, a scalar."""
    with tf.name_scope(name or "sequence_loss"):
        by_example = sequence_loss_by_example(
            logits, targets, weights, average_across_timesteps, softmax_loss_function
        )
        reduce = tf.reduce_mean if average_across_batch else tf.reduce_sum
        return reduce(by_example)


def real_valued_column(
    column_name: str,
    dimension: int | None = 1,
    default_value: object = None,
    dtype: object = tf.float32,
    normalizer: object = None,
) -> Any:
    """`tf.contrib.layers.real_valued_column`: a current numeric column."""
    if dimension is None:
        raise ValueError(
            "dimension=None, a column of any length, which TensorFlow no longer has"
        )
    return tf.feature_column.numeric_column(
        column_name, [dimension], default_value, dtype, normalizer
    )
