"""How well each place of a memory fits a query: Bahdanau's and Luong's scores."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge.contrib.areas.seq2seq.tensors import dimensions


class AttentionMechanism:
    """The base class of all mechanisms: keys and values of a memory, and a mask.

    `score_mask_value` is the score of the places after the end of a sequence. Variables
    have the names of TensorFlow 1.
    """

    _scope: str

    def __init__(
        self,
        num_units: int,
        has_query_layer: bool,
        memory: object,
        memory_sequence_length: object = None,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: object = None,
        dtype: object = None,
        name: str | None = None,
    ) -> None:
        self._num_units, self._name = num_units, name
        self._query_layer: Any = None
        if has_query_layer:
            self._query_layer = _layer(num_units, "query_layer", dtype)
        self._memory_layer = _layer(num_units, "memory_layer", dtype)
        self._scores_to_alignments = probability_fn or tf.nn.softmax
        self._values = tf.convert_to_tensor(memory)
        self._mask = None
        if memory_sequence_length is not None:
            length = tf.shape(self._values)[1]
            self._mask = tf.sequence_mask(memory_sequence_length, length)
            self._values *= tf.cast(self._mask, self._values.dtype)[:, :, None]
        self._keys = self._memory_layer(self._values)
        least = float("-inf") if score_mask_value is None else score_mask_value
        self._score_mask_value = tf.cast(least, self._keys.dtype)
        self._batch_size, self._alignments_size, *_ = dimensions(self._keys)

    memory_layer: property = property(operator.attrgetter("_memory_layer"))
    query_layer: property = property(operator.attrgetter("_query_layer"))
    values: property = property(operator.attrgetter("_values"))
    keys: property = property(operator.attrgetter("_keys"))
    batch_size: property = property(operator.attrgetter("_batch_size"))
    alignments_size: property = property(operator.attrgetter("_alignments_size"))
    state_size: property = property(operator.attrgetter("_alignments_size"))

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """Return the alignments before the first step: zeros."""
        return tf.zeros([batch_size, self._alignments_size], dtype)

    def initial_state(self, batch_size: Any, dtype: Any) -> Any:
        """Return the state before the first step."""
        return self.initial_alignments(batch_size, dtype)

    def __call__(self, query: object, state: object) -> tuple[Any, Any]:
        """Return the alignments, which are the new state too."""
        with tf.compat.v1.variable_scope(None, self._scope, [query]):
            alignments = self._probability_fn(self._score(query), state)
        return alignments, alignments

    def _score(self, query: object) -> Any:
        raise NotImplementedError("_score")

    def _probability_fn(self, score: object, previous_alignments: object) -> Any:
        """Return the alignments of scores."""
        if self._mask is not None:
            least = tf.fill(tf.shape(score), self._score_mask_value)
            score = tf.where(self._mask, score, least)
        return self._scores_to_alignments(score)


class BahdanauAttention(AttentionMechanism):
    """`v * tanh(keys + query)`; with `normalize`, `v` has a factor and a bias too."""

    _scope = "bahdanau_attention"

    def __init__(
        self,
        num_units: int,
        memory: object,
        memory_sequence_length: object = None,
        normalize: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        self._normalize = normalize
        super().__init__(
            num_units, True, memory, memory_sequence_length, *args, **kwargs
        )

    def _score(self, query: Any) -> Any:
        """Return how well each key fits the query: Bahdanau's sum, or normalized."""
        v1, query = tf.compat.v1, self._query_layer(query)
        v = v1.get_variable("attention_v", [self._num_units], query.dtype)
        total = self.keys + query[:, None]
        if self._normalize:
            start = v1.constant_initializer((1.0 / self._num_units) ** 0.5)
            g = v1.get_variable("attention_g", (), query.dtype, start)
            zeros = v1.zeros_initializer()
            total += v1.get_variable("attention_b", v.shape, query.dtype, zeros)
            v = g * v * tf.math.rsqrt(tf.reduce_sum(tf.square(v)))
        return tf.reduce_sum(v * tf.tanh(total), 2)


class LuongAttention(AttentionMechanism):
    """`keys * query`, with `scale` times a factor to train."""

    _scope = "luong_attention"

    def __init__(
        self,
        num_units: int,
        memory: object,
        memory_sequence_length: object = None,
        scale: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        self._scale = scale
        super().__init__(
            num_units, False, memory, memory_sequence_length, *args, **kwargs
        )

    def _score(self, query: Any) -> Any:
        v1 = tf.compat.v1
        score = tf.matmul(query[:, None], self.keys, transpose_b=True)[:, 0]
        if self._scale:
            ones = v1.ones_initializer()
            score = v1.get_variable("attention_g", (), query.dtype, ones) * score
        return score


def _layer(units: int, name: str, dtype: object) -> Any:
    return tf.compat.v1.layers.Dense(
        units, use_bias=False, name=name, dtype=dtype or tf.float32
    )
