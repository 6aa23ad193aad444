"""The tensors of the batch that a step is given, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from hookbridge.ground.batch_parts import named_parts
from hookbridge.ground.structures import COMPOSITES, dense_parts

# The prefix of the keys of a batch's tensors.
BATCH = "batch/"
_PARTS = ("x", "y", "sample_weight")


def batch_tensors(step: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Any]:
    """Return `{"batch/x": tensor, ...}` of what a step is called with.

    An iterator counts as what it gives next, as its specification. A step of the
    user's own with several arguments has their names in the place of `x` and `y`.
    """
    args = tuple(getattr(argument, "element_spec", argument) for argument in args)
    if len(args) == 1:
        parts = args[0] if isinstance(args[0], tuple) else (args[0],)
        named = dict(zip(_PARTS, parts, strict=False))
    else:
        try:
            named = inspect.signature(step).bind(*args).arguments
        except (TypeError, ValueError):
            named = {}
    return {
        f"{BATCH}{name}": tensor
        for part, value in named.items()
        for name, tensor in _leaves(part, value)
    }


def as_iterators(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what a step is called with: an iterator for a Python generator.

    `train_on_batch` of Keras 3 calls the step with a generator of one batch.
    """
    return tuple(
        iter(tf.data.Dataset.from_tensors(next(argument)))
        if inspect.isgenerator(argument)
        else argument
        for argument in args
    )


def _leaves(name: str, value: object) -> Iterator[tuple[str, Any]]:
    """Yield the tensors of a batch, each with the path to it as its name."""
    for path, part in named_parts(name, value):
        if isinstance(part, COMPOSITES):
            yield from dense_parts(path, part)
        elif isinstance(part, (tf.Tensor, tf.TensorSpec)):
            yield path, part
