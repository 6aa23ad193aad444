"""`tf.contrib.training`: batches of elements of about the same length, from queues."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

v1: Any = tf.compat.v1
_ENDS = (tf.errors.OutOfRangeError, tf.errors.CancelledError)


def bucket(
    tensors: object,
    which_bucket: object,
    batch_size: object,
    num_buckets: int,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: object = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: object = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`tf.contrib.training.bucket`: the bucket of a batch, and the batch.

    Each bucket has a queue of elements; full batches go to one more queue.
    """
    sizes = _one_for_each("batch_size", batch_size, num_buckets)
    places = _one_for_each(
        "bucket_capacities", bucket_capacities or capacity, num_buckets
    )
    with v1.name_scope(name, "bucket", tf.nest.flatten(tensors)):
        elements = [v1.convert_to_tensor(tensor) for tensor in _in_order(tensors)]
        types = [element.dtype for element in elements]
        shapes = [element.shape for element in elements] if shapes is None else shapes
        queues = _queues(places, types, shapes, dynamic_pad, shared_name)
        is_open = allow_smaller_final_batch or isinstance(batch_size, list | tuple)
        number = None if is_open else tf.get_static_value(sizes[0])
        shapes_of_batch = [[number, *tf.TensorShape(s)] for s in queues[0].shapes]
        top = v1.PaddingFIFOQueue(
            capacity,
            [tf.int32, *types],
            [[], *shapes_of_batch],
            shared_name=shared_name,
            name="top_queue",
        )
        which = tf.convert_to_tensor(which_bucket, tf.int32)
        enqueue = _kept(keep_input, which, queues, elements)
        batches = [
            top.enqueue([i, *_dequeue(queue, size, allow_smaller_final_batch)])
            for i, (queue, size) in enumerate(zip(queues, sizes, strict=True))
        ]
        _run(queues[0], batches, [top])
        _run(top, [enqueue] * num_threads, queues)
        _summarize(top, queues, capacity)
        chosen_bucket, *batch = top.dequeue(name="dequeue_top")
        return chosen_bucket, _as_given(tensors, batch if len(batch) > 1 else batch[0])


def bucket_by_sequence_length(
    input_length: object,
    tensors: object,
    batch_size: object,
    bucket_boundaries: Sequence[int],
    num_threads: int = 1,
    capacity: int = 32,
    *,
    shapes: Any = None,
    name: str | None = None,
    **options: Any,
) -> Any:
    """`tf.contrib.training.bucket_by_sequence_length`: lengths, and a batch of them."""
    ends = bucket_boundaries
    if not isinstance(ends, list | tuple) or not all(isinstance(n, int) for n in ends):
        raise TypeError(f"bucket_boundaries must be a list of integers, got {ends!r}")
    if not ends or any(a >= b for a, b in itertools.pairwise(ends)):
        raise ValueError(f"bucket_boundaries must be increasing lengths, got {ends!r}")
    all_tensors = [input_length, *tf.nest.flatten(tensors)]
    with v1.name_scope(name, "bucket_by_sequence_length", all_tensors):
        length = tf.convert_to_tensor(input_length, tf.int32)
        which = tf.searchsorted(np.array(ends, np.int32), [length], side="right")[0]
        _, (lengths, *batch) = bucket(
            [length, *_in_order(tensors)],
            which,
            batch_size,
            len(ends) + 1,
            num_threads,
            capacity,
            shapes=None if shapes is None else [[], *shapes],
            **options,
        )
        return lengths, _as_given(tensors, batch)


def _one_for_each(name: str, value: object, number: int) -> list[Any]:
    """Return a value for each bucket."""
    values = list(value) if isinstance(value, list | tuple) else [value] * number
    if len(values) != number:
        raise ValueError(f"{name} {values} must have num_buckets ({number}) elements")
    return values


def _in_order(tensors: Any) -> list[Any]:
    """Return the tensors of a list, or of a dictionary by their keys."""
    if isinstance(tensors, dict):
        return [tensors[key] for key in sorted(tensors, key=str)]
    return list(tensors)


def _as_given(tensors: Any, batch: Any) -> Any:
    """Return a batch as a dictionary, if the tensors were one."""
    if not isinstance(tensors, dict):
        return batch
    values = [batch] if len(tensors) == 1 else batch
    return dict(zip(sorted(tensors, key=str), values, strict=True))


def _queues(
    sizes: Sequence[Any],
    types: object,
    shapes: object,
    dynamic_pad: bool,
    shared_name: str | None,
) -> list[Any]:
    """Return the queue of each bucket."""
    kind = v1.PaddingFIFOQueue if dynamic_pad else v1.FIFOQueue
    return [
        kind(
            size,
            types,
            shapes,
            shared_name=shared_name and f"{shared_name}_{i}",
            name=f"bucket_queue_{i}",
        )
        for i, size in enumerate(sizes)
    ]


def _kept(
    keep: object, which: object, queues: Sequence[Any], elements: Sequence[Any]
) -> Any:
    """Return the op that puts an element into the queue of its bucket."""

    def enqueue() -> Any:
        puts = [functools.partial(queue.enqueue, elements) for queue in queues]
        is_in = [tf.equal(which, i) for i in range(len(queues))]
        return tf.group(*map(v1.cond, is_in, puts, [tf.no_op] * len(queues)))

    is_kept = tf.get_static_value(tf.convert_to_tensor(keep))
    if is_kept is None:
        return v1.cond(keep, enqueue, tf.no_op)
    return enqueue() if is_kept else tf.no_op()


def _dequeue(queue: Any, size: Any, allows_less: bool) -> list[Any]:
    """Return a batch out of the queue of a bucket."""
    dequeue = queue.dequeue_up_to if allows_less else queue.dequeue_many
    batch = dequeue(size)
    return batch if isinstance(batch, list) else [batch]


def _summarize(top: Any, queues: Sequence[Any], capacity: int) -> None:
    """Summarize the queues; as on 1.15, those of the buckets have the top's size."""
    size = tf.cast(top.size(), tf.float32)
    for queue in queues:
        v1.summary.scalar(f"bucket/{queue.name}/size", size)
    v1.summary.scalar(f"bucket/{top.name}/fraction_of_{capacity}_full", size / capacity)


def _run(read: object, enqueues: Sequence[Any], closed: Sequence[Any]) -> None:
    """Add a queue runner, which ends when the queue that it reads is closed."""
    runner = v1.train.QueueRunner(
        read,
        enqueues,
        close_op=tf.group(*(queue.close() for queue in closed)),
        cancel_op=tf.group(
            *(queue.close(cancel_pending_enqueues=True) for queue in closed)
        ),
        queue_closed_exception_types=_ENDS,
    )
    v1.train.add_queue_runner(runner)
