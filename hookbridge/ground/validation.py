"""The interface of an object given as `validation=`, and of the report it gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from hookbridge.ground.protocols import Session


class ValidationReport(Protocol):
    """Receives what a `Validation` tells about its batches while it runs.

    hookbridge makes it. Call each method once for each batch, on the thread on which
    `run` was called, the training loop's. Every call becomes an
    `on_test_batch_begin` or `on_test_batch_end` of the callbacks.
    """

    def batch_begin(self, batch: int) -> None:
        """Note that a batch is about to be evaluated.

        Args:
          batch: its number, counted from 0.
        """

    def batch_end(self, batch: int, logs: Mapping[str, Any]) -> None:
        """Note that a batch was evaluated.

        Args:
          batch: its number, counted from 0.
          logs: `{metric: value}` over the batches so far, without the prefix `val_`.
        """


@runtime_checkable
class Validation(Protocol):
    """A validation that runs on the live variables of the training session.

    An object with the method `run` may be given as `validation=`. `run` is called once
    at the end of each epoch on the thread of the training loop, between the last
    `on_train_batch_end` and `on_epoch_end`, with the session's graph as default graph.
    `on_test_begin` is called before it, `on_test_end` after it with its result.

    If the object has a method `begin()`, it is called once per training run while
    the graph may still be changed, so that it can build its ops there. If it has an
    attribute `metric_names`, an iterable of strings, a callback is refused before
    training if it monitors a `val_*` metric that is not among them.
    """

    def run(self, session: Session, report: ValidationReport) -> Mapping[str, float]:
        """Evaluate once.

        Args:
          session: the raw `tf.compat.v1.Session` of the loop. Runs through it call
            no hooks.
          report: the object to tell about each batch.

        Returns:
          `{metric: value}` over all batches, without the prefix `val_`.
        """
