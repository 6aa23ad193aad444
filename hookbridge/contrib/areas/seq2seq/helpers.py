"""Where a decoder's next input comes from: the data, or what it has just decoded."""

from __future__ import annotations

import operator
from typing import Any

import tensorflow as tf

from hookbridge.contrib.areas.cells import transpose_batch_time
from hookbridge.ground.protocols import Tensor


class Helper:
    """The base class of all helpers, also of those of a program.

    A helper has `initialize() -> (finished, inputs)`, `sample(time, outputs, state) ->
    ids` and `next_inputs(time, outputs, state, sample_ids) -> (finished, inputs,
    state)`.
    """

    batch_size: property = property(operator.attrgetter("_batch_size"))
    sample_ids_shape: Any = tf.TensorShape([])
    sample_ids_dtype: Any = tf.int32


class TrainingHelper(Helper):
    """The next input is that of the data; samples are the best ids."""

    def __init__(
        self,
        inputs: object,
        sequence_length: object,
        time_major: bool = False,
        name: str | None = None,
    ) -> None:
        with tf.name_scope(name or "TrainingHelper"):
            self._inputs = tf.nest.map_structure(tf.convert_to_tensor, inputs)
            self._sequence_length = tf.convert_to_tensor(sequence_length)
            steps = self._inputs
            if not time_major:
                steps = tf.nest.map_structure(transpose_batch_time, steps)
            self._input_tas = tf.nest.map_structure(_array_of, steps)
            self._zero_inputs = tf.nest.map_structure(
                lambda x: tf.zeros_like(x[0]), steps
            )
            self._batch_size = tf.size(self._sequence_length)

    inputs: property = property(operator.attrgetter("_inputs"))
    sequence_length: property = property(operator.attrgetter("_sequence_length"))

    def initialize(self, name: str | None = None) -> Any:
        return self._at(0)

    def sample(self, time: Any, outputs: Any, state: Any = None) -> Any:
        return _best(outputs)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None
    ) -> Any:
        return *self._at(time + 1), state

    def _at(self, time: object) -> tuple[Any, Any]:
        """Return which sequences end before a step, and the inputs of the step."""
        lengths = self._sequence_length
        finished = lengths <= tf.cast(time, lengths.dtype)

        def read() -> Any:
            return tf.nest.map_structure(lambda a: a.read(time), self._input_tas)

        done = tf.reduce_all(finished)
        return finished, tf.cond(done, lambda: self._zero_inputs, read)


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Now and then the next input is the embedding of an id drawn from the outputs.

    A sample is -1 where nothing was drawn.
    """

    def __init__(
        self,
        inputs: object,
        sequence_length: object,
        embedding: object,
        sampling_probability: object,
        time_major: bool = False,
        seed: int | None = None,
        scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(inputs, sequence_length, time_major, name)
        self._embedding_fn = embedding_function(embedding)
        self._sampling_probability = tf.convert_to_tensor(sampling_probability)
        self._seed, self._scheduling_seed = seed, scheduling_seed

    def sample(self, time: Any, outputs: Any, state: Any = None) -> Any:
        numbers = tf.random.uniform([self.batch_size], seed=self._scheduling_seed)
        ids = _drawn(outputs, self._seed)
        return tf.where(numbers < self._sampling_probability, ids, -tf.ones_like(ids))

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None
    ) -> Any:
        finished, inputs = self._at(time + 1)
        sampled = self._embedding_fn(tf.maximum(sample_ids, 0))
        return finished, tf.compat.v1.where(sample_ids > -1, sampled, inputs), state


class GreedyEmbeddingHelper(Helper):
    """The next input is the embedding of the best id."""

    def __init__(
        self, embedding: object, start_tokens: object, end_token: object
    ) -> None:
        self._embedding_fn = embedding_function(embedding)
        self._start_tokens = tf.convert_to_tensor(start_tokens, tf.int32)
        self._end_token = tf.convert_to_tensor(end_token, tf.int32)
        self._start_inputs = self._embedding_fn(self._start_tokens)
        self._batch_size = tf.size(self._start_tokens)

    def initialize(self, name: str | None = None) -> Any:
        return tf.fill([self._batch_size], False), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any = None) -> Any:
        return _best(outputs)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None
    ) -> Any:
        finished = tf.equal(sample_ids, self._end_token)
        return finished, self._embedding_fn(sample_ids), state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """The next input is the embedding of an id drawn from the outputs."""

    def __init__(
        self,
        embedding: object,
        start_tokens: object,
        end_token: object,
        softmax_temperature: object = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._softmax_temperature = softmax_temperature
        self._seed = seed

    def sample(self, time: Any, outputs: Any, state: Any = None) -> Any:
        scale = self._softmax_temperature
        return _drawn(outputs if scale is None else outputs / scale, self._seed)


def embedding_function(embedding: object) -> Any:
    """Return a function of ids for a function or a table."""
    if callable(embedding):
        return embedding
    return lambda ids: tf.nn.embedding_lookup(embedding, ids)


def _best(outputs: object) -> Any:
    return tf.argmax(outputs, -1, output_type=tf.int32)


def _drawn(logits: object, seed: int | None) -> Any:
    return tf.random.categorical(logits, 1, tf.int32, seed)[:, 0]


def _array_of(tensor: Tensor) -> Any:
    shape = tensor.shape[1:] if tensor.shape.rank else None
    array = tf.TensorArray(tensor.dtype, tf.shape(tensor)[0], element_shape=shape)
    return array.unstack(tensor)
