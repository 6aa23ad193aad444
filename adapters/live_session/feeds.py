"""What hooks feed and fetch, checked as `Session.run` checks it."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge import errors


def dense(graph: tf.Graph, key: Any, value: Any) -> list[tuple[Any, Any]]:
    """One entry of a `feed_dict` as `(tensor, value)`: several for a sparse tensor."""
    if isinstance(key, tf.SparseTensor):
        parts = [key.indices, key.values, key.dense_shape]
        return [p for p in zip(parts, value, strict=False) if p[0] is not None]
    try:
        return [(graph.as_graph_element(key, True, False), value)]
    except Exception as e:
        raise TypeError(f"Cannot interpret feed_dict key as Tensor: {e}") from e


def array_of(graph: tf.Graph, tensor: tf.Tensor, value: Any) -> Any:
    """The array to feed for a tensor."""
    if isinstance(value, tf.Tensor) and not hasattr(value, "numpy"):
        raise TypeError(
            "The value of a feed cannot be a tf.Tensor object. Acceptable feed "
            "values include Python scalars, strings, lists, numpy ndarrays, or "
            f"TensorHandles. For reference, the tensor object was {value} which "
            f"was passed to the argument `feed_dict` with key {tensor}."
        )
    array = np.asarray(value, dtype=tensor.dtype.as_numpy_dtype)
    if not tensor.shape.is_compatible_with(array.shape):
        raise ValueError(
            f"Cannot feed value of shape {array.shape} for Tensor {tensor.name}, "
            f"which has shape {tensor.shape}"
        )
    if not graph.is_feedable(tensor):
        raise ValueError(f"Tensor {tensor.name} may not be fed.")
    return array


def check_fetch(fetch: Any, see: str) -> None:
    """Refuses what has no value, which the runtime would do after the step."""
    if isinstance(fetch, tf.Tensor) and fetch.dtype in (tf.resource, tf.variant):
        raise errors.LiveSessionError(
            f"`{fetch.name}` is a {fetch.dtype.name}, which has no value outside the "
            "runtime. Fetch what is read from it.",
            see=see,
        )
