"""`tf.contrib.eager`'s gradients of functions, and its iterator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf


class Iterator:
    """Goes through a dataset once; the batches of `tf.compat.v1.data` too."""

    def __init__(self, dataset: Iterable[Any]) -> None:
        self._iterator: Any = iter(dataset)

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        return next(self._iterator)

    next = __next__

    def get_next(self, name: str | None = None) -> Any:
        """Return the next batch.

        Raise `tf.errors.OutOfRangeError` after the last one.
        """
        return self._iterator.get_next()


def implicit_value_and_gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns `(value, [(gradient, variable)])`.

    The variables are those that are trained and that `f` uses.
    """

    def differentiated(*args: Any, **kwargs: Any) -> Any:
        with tf.GradientTape() as tape:
            value = f(*args, **kwargs)
        if value is None:
            raise ValueError(
                "Cannot differentiate a function that returns None; did you forget "
                f"to return a value from {getattr(f, '__name__', f)}?"
            )
        variables = tape.watched_variables()
        if not variables:
            raise ValueError(
                "No trainable variables were accessed while the function was being "
                "computed."
            )
        gradients = tape.gradient(value, variables)
        return value, list(zip(gradients, variables, strict=True))

    return differentiated


def implicit_gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    """As `implicit_value_and_gradients`, without the value."""
    differentiated = implicit_value_and_gradients(f)
    return lambda *args, **kwargs: differentiated(*args, **kwargs)[1]


def value_and_gradients_function(
    f: Callable[..., Any], params: Sequence[int] | None = None
) -> Callable[..., Any]:
    """Return a function that returns `(value, [gradient])` of its arguments.

    Args:
      f: returns a tensor, or several, whose sum is differentiated.
      params: the places of the arguments; None takes all.
    """

    def differentiated(*args: Any, dy: object = None) -> Any:
        places = range(len(args)) if params is None else params
        tensors = list(map(tf.convert_to_tensor, args))
        sources = [tensors[index] for index in places]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            value = f(*tensors)
        return value, tape.gradient(value, sources, output_gradients=dy)

    return differentiated


def gradients_function(
    f: Callable[..., Any], params: Sequence[int] | None = None
) -> Callable[..., Any]:
    """As `value_and_gradients_function`, without the value."""
    differentiated = value_and_gradients_function(f, params)
    return lambda *args, **kwargs: differentiated(*args, **kwargs)[1]
