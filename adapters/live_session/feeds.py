"""What hooks feed and fetch, checked as `Session.run` checks it."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge import errors
from hookbridge.ground import compat
from hookbridge.ground.arguments import shown
from hookbridge.ground.protocols import Graph


def dense(graph: tf.Graph, key: object, value: Any) -> list[tuple[Any, Any]]:
    """Return an entry of a `feed_dict` as `(tensor, value)`: several if it is sparse.

    Args:
      graph: the graph that has the tensor.
      key: the key of the entry: a tensor or its name, or a sparse tensor.
      value: what is fed; for a sparse tensor its indices, values and dense shape.

    Raises:
      errors.UnknownFeedError: the graph has no tensor of that name.
      errors.RunArgumentsError: the key is not a tensor.
    """
    if isinstance(key, tf.SparseTensor):
        parts = [key.indices, key.values, key.dense_shape]
        return [p for p in zip(parts, value, strict=False) if p[0] is not None]
    try:
        return [(graph.as_graph_element(key, True, False), value)]
    except Exception as e:
        is_unknown = isinstance(e, errors.UnknownTensorError)
        kind = errors.UnknownFeedError if is_unknown else errors.RunArgumentsError
        raise kind(f"Cannot interpret feed_dict key as Tensor: {e}") from e


def array_of(graph: tf.Graph, tensor: tf.Tensor, value: object) -> Any:
    """Return the array to feed for a tensor.

    Args:
      graph: the graph that has the tensor.
      tensor: what is fed.
      value: what NumPy can convert to the tensor's type and a compatible shape.

    Raises:
      errors.RunArgumentsError: it cannot, or the graph does not let the tensor be fed.
    """
    if isinstance(value, tf.Tensor) and not hasattr(value, "numpy"):
        raise errors.RunArgumentsError(
            "The value of a feed cannot be a tf.Tensor object. Acceptable feed "
            "values include Python scalars, strings, lists, numpy ndarrays, or "
            f"TensorHandles. For reference, the tensor object was {value} which "
            f"was passed to the argument `feed_dict` with key {tensor}."
        )
    if value is None:  # NumPy makes a NaN of it
        raise errors.RunArgumentsError(
            f"The feed of `{tensor.name}` is None; expected a value. Leave the entry "
            "out of `feed_dict` to feed nothing."
        )
    try:
        array = np.asarray(value, dtype=tensor.dtype.as_numpy_dtype)
    except (TypeError, ValueError) as e:
        raise errors.RunArgumentsError(
            f"{e}: the feed of `{tensor.name}` is {shown(value)}; expected a value "
            f"that NumPy can convert to {tensor.dtype.name}."
        ) from e
    if not tensor.shape.is_compatible_with(array.shape):
        raise errors.RunArgumentsError(
            f"Cannot feed value of shape {array.shape} for Tensor {tensor.name}, "
            f"which has shape {tensor.shape}"
        )
    if not graph.is_feedable(tensor):
        raise errors.RunArgumentsError(f"Tensor {tensor.name} may not be fed.")
    return array


def mapper_of(graph: Graph, fetches: object) -> Any:
    """Return TensorFlow's mapper of a structure of fetches."""
    try:
        with graph.as_default():
            return compat.private("FetchMapper").for_fetch(fetches)
    except (AttributeError, TypeError, ValueError) as e:
        if isinstance(e.__context__, errors.UnknownTensorError):
            raise errors.UnknownTensorError(str(e)) from e
        wanted: Any = fetches
        if type(fetches) is dict and "caller" in fetches:  # of several hooks
            wanted = [value for key, value in fetches.items() if key != "caller"]
        raise errors.RunArgumentsError(
            f"{e} Fetched: {shown(wanted)}; expected tensors of the graph that hooks "
            'see, or their names, such as "loss:0".'
        ) from e


def check_fetch(fetch: object, see: str) -> None:
    """Refuse what has no value, which the runtime would do after the step.

    Args:
      fetch: a tensor, an op or a variable.
      see: the topic of the page that the error names.

    Raises:
      errors.LiveSessionError: it is a resource or a variant.
    """
    if isinstance(fetch, tf.Tensor) and fetch.dtype in (tf.resource, tf.variant):
        raise errors.LiveSessionError(
            f"`{fetch.name}` is a {fetch.dtype.name}, which has no value outside the "
            "runtime. Fetch what is read from it.",
            see=see,
        )
