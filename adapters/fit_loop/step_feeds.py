"""A learning rate that a hook feeds: the optimizer's own, for one step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from hookbridge.adapters.fit_loop.modes import StepFeeds


@contextlib.contextmanager
def applied(fed: StepFeeds, feeds: Sequence[Any]) -> Iterator[None]:
    """Sets a fed learning rate for the body and puts the old one back."""
    if fed.rate is None:
        yield
        return
    variable, index = fed.rate
    before = tf.identity(variable)
    variable.assign(tf.cast(feeds[index], variable.dtype))
    yield
    variable.assign(before)


def restoring(step: Callable[..., Any], variable: Any) -> Callable[..., Any]:
    """A step that puts the rate back where it fails, or meets the end of the data.

    An error ends a compiled step at once, before what would put it back.
    """

    def call(args: Any, feeds: Any) -> Any:
        before = variable.read_value()
        try:
            return step(args, feeds)
        except BaseException:
            variable.assign(before)
            raise

    return call
