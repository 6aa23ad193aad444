"""Where a decoder's next input comes from: the data, or what it has just decoded."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge.contrib.areas.cells import transpose_batch_time


class Helper:
    """The base class of all helpers, also of those of a program.

    A helper has `initialize() -> (finished, inputs)`, `sample(time, outputs, state) ->
    ids` and `next_inputs(time, outputs, state, sample_ids) -> (finished, inputs,
    state)`.
    """

    _batch_size: Any = None
    _sample_ids_shape: Any = tf.TensorShape([])
    _sample_ids_dtype: Any = tf.int32

    @property
    def batch_size(self) -> Any:
        """The number of sequences, a scalar tensor."""
        if self._batch_size is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._batch_size

    sample_ids_shape = property(operator.attrgetter("_sample_ids_shape"))
    sample_ids_dtype = property(operator.attrgetter("_sample_ids_dtype"))


class CustomHelper(Helper):
    """A helper made of functions."""

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
        self._sample_ids_shape = tf.TensorShape(sample_ids_shape or [])
        self._sample_ids_dtype = sample_ids_dtype or tf.int32

    def initialize(self, name: str | None = None) -> Any:
        finished, inputs = self._initialize_fn()
        if self._batch_size is None:
            self._batch_size = tf.size(finished)
        return finished, inputs

    def sample(
        self, time: Any, outputs: Any, state: Any = None, name: Any = None
    ) -> Any:
        return self._sample_fn(time=time, outputs=outputs, state=state)

    def next_inputs(
        self,
        time: Any,
        outputs: Any,
        state: Any,
        sample_ids: Any = None,
        name: Any = None,
    ) -> Any:
        return self._next_inputs_fn(
            time=time, outputs=outputs, state=state, sample_ids=sample_ids
        )


class TrainingHelper(CustomHelper):
    """The next input is that of the data; samples are the best ids."""

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        time_major: bool = False,
        name: str | None = None,
    ) -> None:
        with tf.name_scope(name or "TrainingHelper"):
            self._inputs = tf.nest.map_structure(tf.convert_to_tensor, inputs)
            self._sequence_length = tf.convert_to_tensor(sequence_length)
            if self._sequence_length.shape.rank not in (None, 1):
                raise ValueError(
                    f"Received sequence_length of shape {self._sequence_length.shape}; "
                    "expected a vector."
                )
            steps = self._inputs
            if not time_major:
                steps = tf.nest.map_structure(transpose_batch_time, steps)
            self._input_tas = tf.nest.map_structure(_array_of, steps)
            self._zero_inputs = tf.nest.map_structure(
                lambda x: tf.zeros_like(x[0]), steps
            )
            self._batch_size = tf.size(self._sequence_length)
        super().__init__(
            lambda: self._at(0),
            lambda time, outputs, state: _best(outputs),
            lambda time, outputs, state, sample_ids: (*self._at(time + 1), state),
        )

    inputs = property(operator.attrgetter("_inputs"))
    sequence_length = property(operator.attrgetter("_sequence_length"))

    def _at(self, time: Any) -> tuple[Any, Any]:
        """Which sequences end before a step, and the inputs of the step."""
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
        self._embedding_fn = embedding_function(embedding)
        self._sampling_probability = tf.convert_to_tensor(sampling_probability)
        self._seed, self._scheduling_seed = seed, scheduling_seed
        from_data = self._next_inputs_fn
        self._sample_fn = self._drawn_now_and_then

        def next_inputs(time: Any, outputs: Any, state: Any, sample_ids: Any) -> Any:
            finished, inputs, state = from_data(time, outputs, state, sample_ids)
            own = self._embedding_fn(tf.maximum(sample_ids, 0))
            return finished, tf.compat.v1.where(sample_ids > -1, own, inputs), state

        self._next_inputs_fn = next_inputs

    def _drawn_now_and_then(self, time: Any, outputs: Any, state: Any) -> Any:
        numbers = tf.random.uniform([self.batch_size], seed=self._scheduling_seed)
        ids = _drawn(outputs, self._seed)
        return tf.where(numbers < self._sampling_probability, ids, -tf.ones_like(ids))


class InferenceHelper(CustomHelper):
    """The next input is made of the last sample, the sample itself by default."""

    def __init__(
        self,
        sample_fn: Callable[[Any], Any],
        sample_shape: Any,
        sample_dtype: Any,
        start_inputs: Any,
        end_fn: Callable[[Any], Any],
        next_inputs_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self._start_inputs = tf.convert_to_tensor(start_inputs)
        self._batch_size = tf.shape(start_inputs)[0]
        following = next_inputs_fn or tf.identity
        super().__init__(
            lambda: (tf.fill([self._batch_size], False), self._start_inputs),
            lambda time, outputs, state: sample_fn(outputs),
            lambda time, outputs, state, sample_ids: (
                end_fn(sample_ids),
                following(sample_ids),
                state,
            ),
            sample_shape,
            sample_dtype,
        )


class GreedyEmbeddingHelper(InferenceHelper):
    """The next input is the embedding of the best id."""

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._embedding_fn = embedding_function(embedding)
        self._start_tokens = tf.convert_to_tensor(start_tokens, tf.int32)
        self._end_token = tf.convert_to_tensor(end_token, tf.int32)
        if self._start_tokens.shape.rank not in (None, 1) or self._end_token.shape.rank:
            raise ValueError(
                f"Received start_tokens of shape {self._start_tokens.shape} and an "
                f"end_token of shape {self._end_token.shape}; expected a vector and a "
                "scalar."
            )
        super().__init__(
            _best,
            [],
            tf.int32,
            self._embedding_fn(self._start_tokens),
            lambda ids: tf.equal(ids, self._end_token),
            self._embedding_fn,
        )


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """The next input is the embedding of an id drawn from the outputs."""

    def __init__(
        self,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        softmax_temperature: Any = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        scale = 1.0 if softmax_temperature is None else softmax_temperature
        self._sample_fn = lambda time, outputs, state: _drawn(outputs / scale, seed)


def embedding_function(embedding: Any) -> Any:
    """A function of ids for a function or a table."""
    if callable(embedding):
        return embedding
    return lambda ids: tf.nn.embedding_lookup(embedding, ids)


def _best(outputs: Any) -> Any:
    return tf.argmax(outputs, -1, output_type=tf.int32)


def _drawn(logits: Any, seed: int | None) -> Any:
    return tf.random.categorical(logits, 1, tf.int32, seed)[:, 0]


def _array_of(tensor: Any) -> Any:
    shape = tensor.shape[1:] if tensor.shape.rank else None
    array = tf.TensorArray(tensor.dtype, tf.shape(tensor)[0], element_shape=shape)
    return array.unstack(tensor)
