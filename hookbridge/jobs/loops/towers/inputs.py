"""The input of towers: a `tf.data.Dataset` in the graph, and a batch for each tower."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.ground.arguments import check_divides
from hookbridge.ground.protocols import Tensor


def known_size(tensor: Tensor) -> int | None:
    """Return the N of a tensor `[N, ...]`; None if N is not static."""
    if tensor.shape.rank is None:
        return None
    # With v2 behaviour switched off, a shape has `Dimension`s in it.
    size: int | None = tf.compat.dimension_value(tensor.shape[0])
    return size


def split_batch(batch: object, num_towers: int) -> list[Any]:
    """Split a structure of tensors `[N, ...]` into `num_towers` equal shards.

    If N is known only at run time, a step with a batch that does not divide raises
    `tf.errors.InvalidArgumentError`.
    """
    if num_towers == 1:
        return [batch]

    def parts(tensor: Tensor) -> Any:
        checks = []
        size = known_size(tensor)
        if size is not None:
            check_divides(size, num_towers)
        else:
            message = (
                f"The batch does not divide among {num_towers} towers. End the input "
                "with `.batch(batch_size, drop_remainder=True)` and a `batch_size` "
                f"that is a multiple of {num_towers}."
            )
            remainder = tf.shape(tensor)[0] % num_towers
            checks = [tf.debugging.assert_equal(remainder, 0, message=message)]
        with tf.control_dependencies(checks):
            return _split(tensor, num_towers, num_towers)

    return _shards(batch, num_towers, parts)


def split_any_batch(batch: object, num_towers: int) -> tuple[list[Any], list[Any]]:
    """Split a batch of any size, for evaluation; return shards and their sizes.

    The last batch may be so small that some towers get no example.
    """
    first = next(tensor for tensor in tf.nest.flatten(batch) if tensor is not None)
    _check(first)
    total = tf.shape(first)[0]
    sizes = [
        total // num_towers + tf.cast(index < total % num_towers, tf.int32)
        for index in range(num_towers)
    ]
    shards = _shards(
        batch, num_towers, lambda tensor: _split(tensor, tf.stack(sizes), num_towers)
    )
    return shards, sizes


def _shards(batch: object, num_towers: int, parts: Callable[[Any], Any]) -> list[Any]:
    split = []
    for tensor in tf.nest.flatten(batch):
        if tensor is not None:
            _check(tensor)
        split.append([None] * num_towers if tensor is None else parts(tensor))
    return [
        tf.nest.pack_sequence_as(batch, list(shard))
        for shard in zip(*split, strict=True)
    ]


def _split(tensor: Tensor, sizes: object, num_towers: int) -> Any:
    if isinstance(tensor, tf.SparseTensor):  # the sizes of these parts are the same
        return tf.sparse.split(sp_input=tensor, num_split=num_towers, axis=0)
    return tf.split(tensor, sizes, num=num_towers)


def _check(tensor: Tensor) -> None:
    """Refuse a tensor that cannot be split among towers."""
    if isinstance(tensor, tf.RaggedTensor):
        raise errors.InvalidArgumentError(
            f"Received the ragged input {tensor}; expected dense or sparse tensors "
            "`[N, ...]`, which can be split among the towers. Use `to_tensor` or "
            "`to_sparse` on the dataset, or one tower."
        )
    if tensor.shape.rank == 0:
        raise errors.InvalidArgumentError(
            f"Received the scalar input {tensor}; expected tensors `[N, ...]`, which "
            "can be split among the towers. Batch the dataset, make the scalar part "
            "of the model, or use one tower."
        )


def fetch_batches(batch: object, num_towers: int) -> list[Any]:
    """Return a batch for each tower, all from the iterator that gave `batch`.

    If the data ends before each tower has its batch, the step raises
    `tf.errors.OutOfRangeError`.
    """
    flat = [tensor for tensor in tf.nest.flatten(batch) if tensor is not None]
    sources = {getattr(tensor, "op", None) for tensor in flat}
    source = sources.pop() if len(sources) == 1 else None
    if source is None or not source.type.startswith("IteratorGetNext"):
        names = ", ".join(str(getattr(tensor, "name", tensor)) for tensor in flat)
        raise errors.InvalidArgumentError(
            f"Received the inputs {names}; expected all of them from one `get_next` "
            "of a `tf.data` iterator, which can be fetched once for each tower. "
            "Return the dataset from the `input_fn` and change its elements in "
            '`dataset.map`, or split each batch (`batches="split"`).'
        )
    fetched = [batch]
    for _ in range(num_towers - 1):
        tensors = tf.raw_ops.IteratorGetNext(
            iterator=source.inputs[0],
            output_types=[output.dtype for output in source.outputs],
            output_shapes=[output.shape for output in source.outputs],
        )
        fetched.append(tf.nest.map_structure(_same_output_of(tensors), batch))
    return fetched


def _same_output_of(tensors: Any) -> Callable[[Any], Any]:
    return lambda each: None if each is None else tensors[each.value_index]


def next_training_batch(dataset: object) -> Any:
    """Return the tensors of the next batch, as each step gets them.

    The session initialises the iterator when it starts and after a recovery.
    """
    iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
    tf.compat.v1.add_to_collection(
        tf.compat.v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer
    )
    return iterator.get_next()


def as_pair(element: object) -> tuple[Any, Any]:
    """Return an element of the input as `(features, labels)`."""
    if not isinstance(element, (tuple, list)) or len(element) != 2:
        raise errors.InvalidArgumentError(
            f"The input function gives elements of type `{type(element).__name__}`; "
            "expected `(features, labels)` pairs."
        )
    return element[0], element[1]


def num_batches(input_fn: Callable[[], Any]) -> int:
    """Return the cardinality of the dataset."""
    with tf.Graph().as_default(), tf.compat.v1.Session(config=_no_gpu()) as session:
        return int(session.run(input_fn().cardinality()))


def check_first_batch(input_fn: Callable[[], Any], num_towers: int) -> None:
    """Check that the first batch of an input divides among the towers.

    If the size is not static, as after `.batch(8)` without `drop_remainder`, one batch
    is read, in a session of its own. An error there is ignored: training meets it again
    and reports it.

    Args:
      input_fn: makes the input of a training.
      num_towers: the number of parts of each batch.

    Raises:
      errors.InvalidArgumentError: the batch does not divide.
    """
    if num_towers == 1:
        return
    with tf.Graph().as_default():
        unknown = []
        for tensor in tf.nest.flatten(next_training_batch(input_fn())):
            if not isinstance(tensor, tf.Tensor) or tensor.shape.rank == 0:
                continue
            size = known_size(tensor)
            if size is None:
                unknown.append(tf.shape(tensor)[0])
            else:
                check_divides(size, num_towers)
        if not unknown:
            return
        with (
            contextlib.suppress(tf.errors.OpError),
            tf.compat.v1.Session(config=_no_gpu()) as session,
        ):
            session.run(tf.compat.v1.tables_initializer())
            for size_read in session.run(unknown):
                check_divides(int(size_read), num_towers)


def _no_gpu() -> Any:
    return tf.compat.v1.ConfigProto(device_count={"GPU": 0})
