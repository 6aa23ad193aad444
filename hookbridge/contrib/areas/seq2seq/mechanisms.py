"""How well each place of a memory fits a query: Bahdanau's and Luong's scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def hardmax(logits: Any, name: str | None = None) -> Any:
    """One where the largest logit is, zeros elsewhere."""
    logits = tf.convert_to_tensor(logits)
    return tf.one_hot(tf.argmax(logits, -1), tf.shape(logits)[-1], dtype=logits.dtype)


class AttentionMechanism:
    """The base class of all mechanisms."""

    @property
    def alignments_size(self) -> Any:
        """The number of places of the memory."""
        raise NotImplementedError("alignments_size")

    @property
    def state_size(self) -> Any:
        """The size of the mechanism's state."""
        raise NotImplementedError("state_size")


class _Scored(AttentionMechanism):
    """A mechanism whose alignments are a function of scores.

    Args:
      memory: `[batch, time, ...]`.
      memory_sequence_length: the lengths of the memory; all of it by default.
      query_layer, memory_layer: layers over the query and the memory, or None.
      probability_fn: makes alignments of scores; softmax by default.
      score_mask_value: the score of places after the end.
      custom_key_value_fn: `(keys, values) -> (keys, values)`.
    """

    def __init__(
        self,
        memory: Any,
        memory_sequence_length: Any,
        query_layer: Any,
        memory_layer: Any,
        probability_fn: Callable[[Any], Any] | None,
        score_mask_value: Any,
        custom_key_value_fn: Callable[..., Any] | None,
    ) -> None:
        self._query_layer, self._memory_layer = query_layer, memory_layer
        self._probability_fn = probability_fn or tf.nn.softmax
        self._lengths = memory_sequence_length
        self._values = _without_rest(tf.convert_to_tensor(memory), self._lengths)
        layer = memory_layer or (lambda values: values)
        self._keys = layer(self._values)
        if custom_key_value_fn is not None:
            self._keys, self._values = custom_key_value_fn(self._keys, self._values)
        if score_mask_value is None:
            score_mask_value = float("-inf")
        self._mask_value = tf.cast(score_mask_value, self._keys.dtype)
        self._batch_size = _size(self._keys, 0)
        self._alignments_size = _size(self._keys, 1)

    @property
    def memory_layer(self) -> Any:
        """The layer over the memory, or None."""
        return self._memory_layer

    @property
    def query_layer(self) -> Any:
        """The layer over the query, or None."""
        return self._query_layer

    @property
    def values(self) -> Any:
        """The memory, zero after the ends."""
        return self._values

    @property
    def keys(self) -> Any:
        """The memory after its layer."""
        return self._keys

    @property
    def batch_size(self) -> Any:
        """The number of sequences."""
        return self._batch_size

    @property
    def alignments_size(self) -> Any:
        return self._alignments_size

    @property
    def state_size(self) -> Any:
        return self._alignments_size

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """The alignments before the first step: zeros."""
        return _zeros(batch_size, self._alignments_size, dtype)

    def initial_state(self, batch_size: Any, dtype: Any) -> Any:
        """The state before the first step."""
        return self.initial_alignments(batch_size, dtype)

    def _alignments(self, score: Any) -> tuple[Any, Any]:
        """The alignments, which are the new state too."""
        if self._lengths is not None:
            mask = tf.sequence_mask(self._lengths, tf.shape(score)[1])
            score = tf.where(mask, score, tf.fill(tf.shape(score), self._mask_value))
        alignments = self._probability_fn(score)
        return alignments, alignments


class BahdanauAttention(_Scored):
    """`v * tanh(keys + query)`; variables have the names of TensorFlow 1.

    Args:
      num_units: the size of keys and queries.
      normalize: whether `v` is normalised, with a factor and a bias to train.
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Callable[..., Any] | None = None,
        name: str = "BahdanauAttention",
    ) -> None:
        self._num_units, self._normalize = num_units, normalize
        self._dtype = dtype or tf.float32
        super().__init__(
            memory,
            memory_sequence_length,
            _layer(num_units, "query_layer", self._dtype),
            _layer(num_units, "memory_layer", self._dtype),
            probability_fn,
            score_mask_value,
            custom_key_value_fn,
        )

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """The alignments and the new state."""
        v1 = tf.compat.v1
        with v1.variable_scope(None, "bahdanau_attention", [query]):
            query = self._query_layer(query) if self._query_layer else query
            v = v1.get_variable("attention_v", [self._num_units], query.dtype)
            total = self._keys + query[:, None]
            if self._normalize:
                start = v1.constant_initializer((1.0 / self._num_units) ** 0.5)
                g = v1.get_variable("attention_g", (), query.dtype, start)
                zeros = v1.zeros_initializer()
                b = v1.get_variable(
                    "attention_b", [self._num_units], query.dtype, zeros
                )
                total = total + b
                v = g * v * tf.math.rsqrt(tf.reduce_sum(tf.square(v)))
            return self._alignments(tf.reduce_sum(v * tf.tanh(total), 2))


class LuongAttention(_Scored):
    """`keys * query`; variables have the names of TensorFlow 1.

    Args:
      num_units: the size of the queries.
      scale: whether the scores have a factor to train.
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Callable[..., Any] | None = None,
        name: str = "LuongAttention",
    ) -> None:
        self._num_units, self._scale = num_units, scale
        super().__init__(
            memory,
            memory_sequence_length,
            None,
            _layer(num_units, "memory_layer", dtype or tf.float32),
            probability_fn,
            score_mask_value,
            custom_key_value_fn,
        )

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """The alignments and the new state."""
        v1 = tf.compat.v1
        depth, units = query.shape[-1], self._keys.shape[-1]
        if depth != units:
            raise ValueError(
                f"Received a query of depth {depth} and keys of depth {units}; "
                "expected the same: `num_units` is the size of the cell's output."
            )
        with v1.variable_scope(None, "luong_attention", [query]):
            score = tf.matmul(query[:, None], self._keys, transpose_b=True)[:, 0]
            if self._scale:
                ones = v1.ones_initializer()
                score = v1.get_variable("attention_g", (), query.dtype, ones) * score
            return self._alignments(score)


def _layer(units: int, name: str, dtype: Any) -> Any:
    return tf.compat.v1.layers.Dense(units, use_bias=False, name=name, dtype=dtype)


def _without_rest(memory: Any, lengths: Any) -> Any:
    """A memory with zeros after the ends of its sequences."""
    if lengths is None:
        return memory
    mask = tf.sequence_mask(lengths, tf.shape(memory)[1], memory.dtype)
    rest = tf.ones([memory.shape.rank - 2], tf.int32)
    return memory * tf.reshape(mask, tf.concat([tf.shape(mask), rest], 0))


def _size(tensor: Any, axis: int) -> Any:
    known = tensor.shape[axis]
    return tf.shape(tensor)[axis] if known is None else known


def _zeros(batch_size: Any, size: Any, dtype: Any) -> Any:
    return tf.zeros(tf.stack([batch_size, size]), dtype)
