"""Runs with feeds through the callables of TensorFlow's runtime.

`Session.make_callable` with a `feed_list` only calls `Session.run`. The runtime's own
callable, made from `CallableOptions`, takes arrays as they are. This module checks and
converts the fed values, as `run` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge import compat

# Types that `run` converts by `numpy.asarray` alone.
_PLAIN = (np.ndarray, np.generic, float, bool, list, tuple)


def feed_key(feeds: Mapping[Any, Any]) -> tuple[Any, ...] | None:
    """A key of the fed tensors, valid as long as they exist; None for unusual feeds."""
    key = []
    for fed in feeds:
        kind = type(fed)
        if kind is not tf.Tensor and not isinstance(fed, tf.Tensor):
            return None
        key.append(id(fed))
    return tuple(key)


def without_copies(feeds: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Feeds without the names of tensors that are fed the same value themselves.

    A learning rate that a callback overrides is fed under both, so that a hook which
    feeds it too is found.
    """
    names = [key for key in feeds if type(key) is str]
    if not names:
        return feeds
    fed = {k.name: value for k, value in feeds.items() if isinstance(k, tf.Tensor)}
    copies = {name for name in names if fed.get(name, feeds) is feeds[name]}
    return {k: v for k, v in feeds.items() if type(k) is not str or k not in copies}


class FedCallable:
    """One set of fetches with one set of fed tensors.

    Make it after an ordinary run of both: that run has checked that the tensors may be
    fed and the fetches fetched.
    """

    def __init__(self, session: Any, mapper: Any, fed: list[Any]) -> None:
        self._mapper = mapper
        self._fed = [(np.dtype(t.dtype.as_numpy_dtype), t.shape) for t in fed]
        options = compat.private("config_pb2").CallableOptions()
        options.feed.extend(t.name for t in fed)
        elements = mapper.unique_fetches()
        self._is_op = [isinstance(e, tf.Operation) for e in elements]
        for element, is_op in zip(elements, self._is_op, strict=True):
            (options.target if is_op else options.fetch).append(element.name)
        self._call = compat.private("session_make_callable")(session, options)

    @classmethod
    def of(cls, session: Any, fetches: Any, fed: list[Any]) -> FedCallable | None:
        """The callable; None if it would not give the same results as `run`.

        It does not for fetches that are fed (`run` returns the fed value), for values
        that are not numbers, and for sessions on a server.
        """
        others = (tf.string, tf.resource, tf.variant)
        if session.sess_str or any(
            not t.dtype.is_numpy_compatible or t.dtype in others for t in fed
        ):
            return None
        with session.graph.as_default():
            mapper = compat.private("FetchMapper").for_fetch(fetches)
        names = {t.name for t in fed}
        for element in mapper.unique_fetches():
            # `run` returns a handle for resources.
            is_handle = getattr(element, "dtype", None) == tf.resource
            if element.name in names or is_handle:
                return None
        return cls(session, mapper, fed)

    def arrays(self, feeds: Mapping[Any, Any]) -> list[Any] | None:
        """The values to feed, or None if `run` has to check them."""
        arrays = []
        for (dtype, shape), value in zip(self._fed, feeds.values(), strict=True):
            array = value
            if type(value) is not np.ndarray or value.dtype != dtype:
                array = _converted(value, dtype)
            if array is None or not shape.is_compatible_with(array.shape):
                return None
            arrays.append(array)
        return arrays

    def run(self, arrays: list[Any]) -> Any:
        """Runs with the values of `arrays`."""
        results = iter(self._call(*arrays))
        values = [None if is_op else next(results) for is_op in self._is_op]
        return self._mapper.build_results(values)


def _converted(value: Any, dtype: Any) -> Any:
    """A value as an array; None if `run` would treat it specially or raise."""
    if not isinstance(value, _PLAIN) and type(value) is not int:
        return None
    try:
        array = np.asarray(value, dtype)
        # `run` raises for a number that the type cannot hold.
        return None if type(value) is int and array != value else array
    except (TypeError, ValueError, OverflowError):
        return None
