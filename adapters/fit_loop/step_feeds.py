"""Feeds that go into the model's step: a learning rate, or tensors of the step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf


class StepFeeds(NamedTuple):
    """Which of a run's feeds go into the step itself."""

    rate: tuple[Any, int] | None = None
    tensors: Mapping[str, int] = {}


NO_FEEDS = StepFeeds()


@contextlib.contextmanager
def rate_applied(fed: StepFeeds, feeds: Sequence[Any]) -> Iterator[None]:
    """Sets a fed learning rate for the body and puts the old one back."""
    if fed.rate is None:
        yield
        return
    variable, index = fed.rate
    before = tf.identity(variable)
    variable.assign(tf.cast(feeds[index], variable.dtype))
    yield
    variable.assign(before)


def restoring_rate(step: Callable[..., Any], variable: Any) -> Callable[..., Any]:
    """A step that puts the rate back if it fails or the data ends."""
    # An error ends a compiled step at once, before `rate_applied` puts the rate back.

    def call(args: Any, feeds: Any) -> Any:
        before = variable.read_value()
        try:
            return step(args, feeds)
        except BaseException:
            variable.assign(before)
            raise

    return call
