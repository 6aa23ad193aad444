"""Runs with feeds through the callables of TensorFlow's runtime.

`Session.make_callable` with a `feed_list` is `Session.run` again. What runs below it,
a callable made from `CallableOptions`, takes arrays as they are: what `run` checks and
converts in every step is done here, as far as it can differ from step to step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from hookbridge import compat

# Their conversion is `numpy.asarray`, and they are no objects of TensorFlow.
_PLAIN = (np.ndarray, np.generic, float, bool, list, tuple)


def feed_key(feeds: Mapping[Any, Any]) -> tuple[Any, ...] | None:
    """A key of what is fed, valid while the tensors live; None for unusual feeds."""
    key = []
    for fed in feeds:
        kind = type(fed)
        if kind is not tf.Tensor and not isinstance(fed, tf.Tensor):
            return None
        key.append(id(fed))
    return tuple(key)


class FedCallable:
    """One set of fetches with one set of fed tensors.

    It is made after an ordinary run of both, which checked what cannot change:
    that the tensors may be fed and the fetches fetched.

    Args:
      session: the session, in this process.
      fetches: any structure.
      fed: the tensors that are fed, in the order of the feeds.
    """

    def __init__(self, session: Any, fetches: Any, fed: list[Any]) -> None:
        self._fetches = fetches
        with session.graph.as_default():
            self._mapper = compat.private("FetchMapper").for_fetch(fetches)
        self._fed = [(np.dtype(t.dtype.as_numpy_dtype), t.shape) for t in fed]
        options = compat.private("config_pb2").CallableOptions()
        options.feed.extend(t.name for t in fed)
        elements = self._mapper.unique_fetches()
        self._is_op = [isinstance(e, tf.Operation) for e in elements]
        for element, is_op in zip(elements, self._is_op, strict=True):
            (options.target if is_op else options.fetch).append(element.name)
        self._call = compat.private("session_make_callable")(session, options)

    @staticmethod
    def suits(session: Any, fetches: Any, fed: list[Any]) -> bool:
        """Whether a callable gives what `run` gives.

        Not for fetches that are fed, which `run` hands back, nor for values that are
        no numbers, nor for sessions on a server.
        """
        if session.sess_str:
            return False
        if any(not t.dtype.is_numpy_compatible or t.dtype == tf.string for t in fed):
            return False
        if any(t.dtype in (tf.resource, tf.variant) for t in fed):
            return False
        with session.graph.as_default():
            elements = compat.private("FetchMapper").for_fetch(fetches).unique_fetches()
        names = {t.name for t in fed}
        return not any(
            element.name in names
            # What is kept in the runtime is fetched as a handle.
            or (not isinstance(element, tf.Operation) and element.dtype == tf.resource)
            for element in elements
        )

    def arrays(self, feeds: Mapping[Any, Any]) -> list[Any] | None:
        """The values to feed, or None if `run` has to look at them.

        Args:
          feeds: with the same keys in the same order.
        """
        found = []
        for (dtype, shape), value in zip(self._fed, feeds.values(), strict=True):
            array = value
            if type(value) is not np.ndarray or value.dtype != dtype:
                array = _converted(value, dtype)
            if array is None or not shape.is_compatible_with(array.shape):
                return None
            found.append(array)
        return found

    def run(self, arrays: list[Any]) -> Any:
        """Runs with the values of `arrays`."""
        results = iter(self._call(*arrays))
        values = [None if is_op else next(results) for is_op in self._is_op]
        return self._mapper.build_results(values)


def _converted(value: Any, dtype: Any) -> Any:
    """A value as an array, or None where `run` would look at it twice or raise."""
    if not isinstance(value, _PLAIN) and type(value) is not int:
        return None
    try:
        array = np.asarray(value, dtype)
        # A number that the type cannot hold is an error.
        return None if type(value) is int and array != value else array
    except (TypeError, ValueError, OverflowError):
        return None
