"""A batch for each tower: parts of one, or one more fetched from the input."""

from __future__ import annotations

from typing import Any

from hookbridge import errors


def check_divides(batch_size: int, num_towers: int) -> None:
    """Raises unless `batch_size` examples can be shared out evenly.

    Raises:
      errors.InvalidArgumentError: the batch does not divide among the towers.
    """
    if batch_size % num_towers:
        down = batch_size - batch_size % num_towers
        message = (
            f"Received a batch of {batch_size} examples for {num_towers} towers; "
            f"expected a multiple of {num_towers}"
        )
        if not down:
            raise errors.InvalidArgumentError(
                f"{message}, an example at least for each tower. Use at most "
                f"{batch_size} towers, or a larger batch."
            )
        raise errors.InvalidArgumentError(
            f"{message}, for example {down} or {down + num_towers}. Change the "
            "batch size or the number of towers, and end the input with "
            "`.batch(..., drop_remainder=True)`."
        )


def split_batch(batch: Any, num_towers: int) -> list[Any]:
    """Splits a batch along its first axis into `num_towers` equal shards.

    Args:
      batch: a (nested) structure of tensors, each `[N, ...]`, the same N for all.
      num_towers: number of shards.

    Returns:
      `num_towers` structures like `batch` with tensors `[N / num_towers, ...]`. A
      single tower gets the tensors themselves. Where N is known only at run time,
      a step with a batch that does not divide raises
      `tf.errors.InvalidArgumentError`.

    Raises:
      errors.InvalidArgumentError: N is known and does not divide, or an input is a
        scalar, sparse or ragged.
    """
    import tensorflow as tf

    if num_towers == 1:
        return [batch]
    shards: list[list[Any]] = [[] for _ in range(num_towers)]
    flat = tf.nest.flatten(batch)
    for tensor in flat:
        for shard, part in zip(shards, _split(tensor, num_towers), strict=True):
            shard.append(part)
    return [tf.nest.pack_sequence_as(batch, shard) for shard in shards]


def check_dense(tensor: Any) -> None:
    """Raises unless the input is a tensor.

    Raises:
      errors.InvalidArgumentError: the input is sparse or ragged.
    """
    import tensorflow as tf

    for kind, cls, dense in (
        ("sparse", tf.SparseTensor, "`tf.sparse.to_dense`"),
        ("ragged", tf.RaggedTensor, "`to_tensor`"),
    ):
        if isinstance(tensor, cls):
            raise errors.InvalidArgumentError(
                f"Received the {kind} input {tensor}; expected dense tensors "
                "`[N, ...]`, which can be split among the towers. Use "
                f"{dense} on the dataset, or one tower."
            )


def _split(tensor: Any, num_towers: int) -> list[Any]:
    import tensorflow as tf

    check_dense(tensor)
    if tensor.shape.rank == 0:
        raise errors.InvalidArgumentError(
            f"Received the scalar input `{tensor.name}`; expected tensors "
            "`[N, ...]`, which can be split among the towers. Batch the dataset, or "
            "make the scalar part of the model."
        )
    size = tensor.shape[0] if tensor.shape.rank is not None else None
    if size is not None:
        check_divides(int(size), num_towers)
        return list(tf.split(tensor, num_towers))
    size = tf.shape(tensor)[0]
    check = tf.debugging.assert_equal(
        size % num_towers,
        0,
        message=(
            f"The batch does not divide among {num_towers} towers. End the input "
            "with `.batch(batch_size, drop_remainder=True)` and a `batch_size` that "
            f"is a multiple of {num_towers}."
        ),
    )
    with tf.control_dependencies([check]):
        return list(tf.split(tf.identity(tensor), num_towers))


def fetch_batches(batch: Any, num_towers: int) -> list[Any]:
    """A batch for each tower from the iterator that gave the first.

    Args:
      batch: a (nested) structure of tensors, the whole or a part of what one
        `get_next` of a `tf.data` iterator returned.
      num_towers: number of batches.

    Returns:
      `num_towers` structures like `batch`, the first one `batch` itself. A step in
      which the data ends before each has its batch raises
      `tf.errors.OutOfRangeError`.

    Raises:
      errors.InvalidArgumentError: a tensor does not come straight from the iterator,
        or the tensors come from several.
    """
    import tensorflow as tf

    flat = tf.nest.flatten(batch)
    sources = {getattr(tensor, "op", None) for tensor in flat}
    source = sources.pop() if len(sources) == 1 else None
    if source is None or not source.type.startswith("IteratorGetNext"):
        names = ", ".join(str(getattr(tensor, "name", tensor)) for tensor in flat)
        raise errors.InvalidArgumentError(
            f"Received the inputs {names}; expected all of them from one `get_next` of "
            "a `tf.data` iterator, which can be fetched once for each tower. Let the "
            "`input_fn` return the dataset and do what changes its elements in "
            '`dataset.map`, or split each batch (`batches="split"`).'
        )
    fetched = [batch]
    for _ in range(num_towers - 1):
        tensors = tf.raw_ops.IteratorGetNext(
            iterator=source.inputs[0],
            output_types=[output.dtype for output in source.outputs],
            output_shapes=[output.shape for output in source.outputs],
        )
        own = [tensors[tensor.value_index] for tensor in flat]
        fetched.append(tf.nest.pack_sequence_as(batch, own))
    return fetched
