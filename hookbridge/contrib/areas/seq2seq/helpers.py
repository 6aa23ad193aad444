"""Where a decoder's next input comes from: the data, or what it has just decoded.

A helper has `initialize() -> (finished, inputs)`, `sample(time, outputs, state) -> ids`
and `next_inputs(time, outputs, state, sample_ids) -> (finished, inputs, state)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf


class Helper:
    """The base class of all helpers."""

    @property
    def batch_size(self) -> Any:
        """The number of sequences, a scalar tensor."""
        raise NotImplementedError("batch_size")

    @property
    def sample_ids_shape(self) -> Any:
        """The shape of one sample."""
        return tf.TensorShape([])

    @property
    def sample_ids_dtype(self) -> Any:
        """The type of the samples."""
        return tf.int32

    def initialize(self, name: str | None = None) -> Any:
        """`(finished, inputs)` of the first step."""
        raise NotImplementedError("initialize")

    def sample(self, time: Any, outputs: Any, state: Any, name: Any = None) -> Any:
        """What was decoded in a step."""
        raise NotImplementedError("sample")

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: Any = None
    ) -> Any:
        """`(finished, inputs, state)` of the next step."""
        raise NotImplementedError("next_inputs")


class CustomHelper(Helper):
    """A helper made of functions.

    Args:
      initialize_fn: `() -> (finished, inputs)`.
      sample_fn: `(time, outputs, state) -> ids`.
      next_inputs_fn: `(time, outputs, state, sample_ids) -> (finished, inputs, state)`.
      sample_ids_shape, sample_ids_dtype: of one sample; a scalar, `int32`.
    """

    def __init__(
        self,
        initialize_fn: Callable[[], Any],
        sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., Any],
        sample_ids_shape: Any = None,
        sample_ids_dtype: Any = None,
    ) -> None:
        self._initialize_fn = initialize_fn
        self._sample_fn = sample_fn
        self._next_inputs_fn = next_inputs_fn
        self._batch_size: Any = None
        self._shape = tf.TensorShape(sample_ids_shape or [])
        self._dtype = sample_ids_dtype or tf.int32

    @property
    def batch_size(self) -> Any:
        if self._batch_size is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._batch_size

    @property
    def sample_ids_shape(self) -> Any:
        return self._shape

    @property
    def sample_ids_dtype(self) -> Any:
        return self._dtype

    def initialize(self, name: str | None = None) -> Any:
        finished, inputs = self._initialize_fn()
        if self._batch_size is None:
            self._batch_size = tf.size(finished)
        return finished, inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: Any = None) -> Any:
        return self._sample_fn(time=time, outputs=outputs, state=state)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: Any = None
    ) -> Any:
        return self._next_inputs_fn(
            time=time, outputs=outputs, state=state, sample_ids=sample_ids
        )


class TrainingHelper(Helper):
    """The next input is that of the data; samples are the best ids.

    Args:
      inputs: a structure of tensors, `[batch, time, ...]`.
      sequence_length: the length of each sequence, `[batch]`.
      time_major: whether inputs are `[time, batch, ...]`.
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        time_major: bool = False,
        name: str | None = None,
    ) -> None:
        with tf.name_scope(name or "TrainingHelper"):
            inputs = tf.nest.map_structure(tf.convert_to_tensor, inputs)
            self._inputs = inputs
            self._lengths = tf.convert_to_tensor(sequence_length)
            if self._lengths.shape.rank not in (None, 1):
                raise ValueError(
                    f"Received sequence_length of shape {self._lengths.shape}; "
                    "expected a vector."
                )
            if not time_major:
                inputs = tf.nest.map_structure(swapped, inputs)
            self._arrays = tf.nest.map_structure(_array_of, inputs)
            self._zeros = tf.nest.map_structure(lambda x: tf.zeros_like(x[0]), inputs)
            self._batch_size = tf.size(self._lengths)

    @property
    def inputs(self) -> Any:
        """The inputs of all steps."""
        return self._inputs

    @property
    def sequence_length(self) -> Any:
        """The length of each sequence."""
        return self._lengths

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    def initialize(self, name: str | None = None) -> Any:
        return self._at(0)

    def sample(
        self, time: Any, outputs: Any, state: Any = None, name: Any = None
    ) -> Any:
        return best(outputs)

    def next_inputs(
        self,
        time: Any,
        outputs: Any,
        state: Any,
        sample_ids: Any = None,
        name: Any = None,
    ) -> Any:
        return (*self._at(time + 1), state)

    def _at(self, time: Any) -> tuple[Any, Any]:
        """Which sequences end before a step, and the inputs of the step."""
        finished = self._lengths <= tf.cast(time, self._lengths.dtype)

        def read() -> Any:
            return tf.nest.map_structure(lambda a: a.read(time), self._arrays)

        done = tf.reduce_all(finished)
        return finished, tf.cond(done, lambda: self._zeros, read)


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Now and then the next input is the embedding of an id drawn from the outputs.

    Args:
      inputs, sequence_length, time_major, name: as in `TrainingHelper`.
      embedding: a function of ids, or the table.
      sampling_probability: how often an id is drawn; the sample is -1 otherwise.
      seed: of the ids.
      scheduling_seed: of the decisions.
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        embedding: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(inputs, sequence_length, time_major, name)
        self._embed = embedding_function(embedding)
        self._probability = tf.convert_to_tensor(sampling_probability)
        self._seed, self._scheduling_seed = seed, scheduling_seed

    def sample(
        self, time: Any, outputs: Any, state: Any = None, name: Any = None
    ) -> Any:
        numbers = tf.random.uniform([self.batch_size], seed=self._scheduling_seed)
        ids = drawn(outputs, self._seed)
        return tf.where(numbers < self._probability, ids, -tf.ones_like(ids))

    def next_inputs(
        self,
        time: Any,
        outputs: Any,
        state: Any,
        sample_ids: Any = None,
        name: Any = None,
    ) -> Any:
        finished, inputs, state = super().next_inputs(time, outputs, state)
        own = self._embed(tf.maximum(sample_ids, 0))
        return finished, tf.compat.v1.where(sample_ids > -1, own, inputs), state


class InferenceHelper(Helper):
    """The next input is made of the last sample.

    Args:
      sample_fn: `outputs -> samples`.
      sample_shape, sample_dtype: of one sample.
      start_inputs: the inputs of the first step, `[batch, ...]`.
      end_fn: `samples -> finished`.
      next_inputs_fn: `samples -> inputs`; the samples themselves by default.
    """

    def __init__(
        self,
        sample_fn: Callable[[Any], Any],
        sample_shape: Any,
        sample_dtype: Any,
        start_inputs: Any,
        end_fn: Callable[[Any], Any],
        next_inputs_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self._sample_fn, self._end_fn = sample_fn, end_fn
        self._shape, self._dtype = tf.TensorShape(sample_shape), sample_dtype
        self._start_inputs = tf.convert_to_tensor(start_inputs)
        self._next_inputs_fn = next_inputs_fn or (lambda sample_ids: sample_ids)
        self._batch_size = tf.shape(start_inputs)[0]

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def sample_ids_shape(self) -> Any:
        return self._shape

    @property
    def sample_ids_dtype(self) -> Any:
        return self._dtype

    def initialize(self, name: str | None = None) -> Any:
        return tf.fill([self._batch_size], False), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: Any = None) -> Any:
        return self._sample_fn(outputs)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: Any = None
    ) -> Any:
        return self._end_fn(sample_ids), self._next_inputs_fn(sample_ids), state


class GreedyEmbeddingHelper(Helper):
    """The next input is the embedding of the best id.

    Args:
      embedding: a function of ids, or the table.
      start_tokens: the first ids, `[batch]`.
      end_token: the id that ends a sequence.
    """

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._embed = embedding_function(embedding)
        tokens = tf.convert_to_tensor(start_tokens, tf.int32)
        self._end_token = tf.convert_to_tensor(end_token, tf.int32)
        if tokens.shape.rank not in (None, 1) or self._end_token.shape.rank:
            raise ValueError(
                f"Received start_tokens of shape {tokens.shape} and an end_token of "
                f"shape {self._end_token.shape}; expected a vector and a scalar."
            )
        self._start_inputs = self._embed(tokens)
        self._batch_size = tf.size(tokens)

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    def initialize(self, name: str | None = None) -> Any:
        return tf.fill([self._batch_size], False), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: Any = None) -> Any:
        return best(outputs)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: Any = None
    ) -> Any:
        finished = tf.equal(sample_ids, self._end_token)
        return finished, self._embed(sample_ids), state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """The next input is the embedding of an id drawn from the outputs.

    Args:
      embedding, start_tokens, end_token: as in `GreedyEmbeddingHelper`.
      softmax_temperature: the outputs are divided by it.
      seed: of the ids.
    """

    def __init__(
        self,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        softmax_temperature: Any = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._temperature, self._seed = softmax_temperature, seed

    def sample(self, time: Any, outputs: Any, state: Any, name: Any = None) -> Any:
        if self._temperature is not None:
            outputs = outputs / self._temperature
        return drawn(outputs, self._seed)


def embedding_function(embedding: Any) -> Any:
    """A function of ids for a function or a table."""
    if callable(embedding):
        return embedding
    return lambda ids: tf.nn.embedding_lookup(embedding, ids)


def best(outputs: Any) -> Any:
    """The best ids of logits, int32."""
    return tf.argmax(outputs, -1, output_type=tf.int32)


def drawn(logits: Any, seed: int | None) -> Any:
    """Ids drawn by their logits, int32."""
    return tf.random.categorical(logits, 1, tf.int32, seed)[:, 0]


def swapped(tensor: Any) -> Any:
    """A tensor with its first two axes exchanged."""
    rank = tensor.shape.rank
    rest = range(2, rank) if rank is not None else tf.range(2, tf.rank(tensor))
    return tf.transpose(tensor, [1, 0, *rest] if rank else tf.concat([[1, 0], rest], 0))


def _array_of(tensor: Any) -> Any:
    shape = tensor.shape[1:] if tensor.shape.rank else None
    array = tf.TensorArray(tensor.dtype, tf.shape(tensor)[0], element_shape=shape)
    return array.unstack(tensor)
