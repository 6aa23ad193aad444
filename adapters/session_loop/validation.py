"""Validation in mid-training: what `validation=` may be and how it is run."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from hookbridge import compat, errors


class ValidationReport(Protocol):
    """What a `Validation` tells about its batches while it runs.

    Called on the thread of the training loop. Every call becomes an
    `on_test_batch_begin` or `on_test_batch_end` of the callbacks.
    """

    def batch_begin(self, batch: int) -> None:
        """Batch number `batch`, counted from 0, is about to be evaluated."""

    def batch_end(self, batch: int, logs: Mapping[str, Any]) -> None:
        """Batch number `batch` was evaluated; `logs` are the metrics so far."""


@runtime_checkable
class Validation(Protocol):
    """A validation that runs on the live variables of the training session.

    An object with this method may be given as `validation=`. It is called once at
    the end of each epoch on the thread of the training loop, between the last
    `on_train_batch_end` and `on_epoch_end`, with the session's graph as default
    graph. `on_test_begin` was called before, `on_test_end` is called with the result.

    If the object has a method `begin()`, it is called once per training run while
    the graph may still be changed, so that it can build its ops there. If it has an
    attribute `metric_names`, an iterable of strings, a callback that monitors a
    `val_*` metric which is not among them is refused before training.
    """

    def run(self, session: Any, report: ValidationReport) -> Mapping[str, float]:
        """Evaluates once.

        Args:
          session: the raw `tf.compat.v1.Session` of the loop. Runs through it call
            no hooks.
          report: to be told about each batch.

        Returns:
          `{metric: value}` over all batches, without the prefix `val_`.
        """
        ...


class _FromCallable:
    """A function without arguments that returns `{metric: value}`.

    It runs under eager execution, as the methods of callbacks do.
    """

    def __init__(self, function: Any) -> None:
        self._function = function

    def run(self, session: Any, report: ValidationReport) -> Mapping[str, float]:
        del session, report
        with compat.private("eager_mode")():
            result = self._function()
        if not isinstance(result, Mapping):
            raise errors.InvalidArgumentError(
                f"The function given as `validation=` returned {result!r}; expected "
                "a dict `{metric name: value}`."
            )
        return result


def as_validation(validation: Any) -> Validation | None:
    """What a user gave as `validation=` as a `Validation`.

    Args:
      validation: None, a function without arguments that returns
        `{metric: value}`, a pair `(estimator, eval_spec)`, or an object with the
        method of `Validation`.

    Raises:
      errors.InvalidArgumentError: it is none of those.
    """
    if validation is None:
        return None
    if not inspect.isclass(validation) and isinstance(validation, Validation):
        return validation
    if isinstance(validation, (tuple, list)) and len(validation) == 2:
        from hookbridge.adapters.session_loop.validations import EstimatorValidation

        return EstimatorValidation(*validation)
    if callable(validation) and not inspect.isclass(validation):
        return _FromCallable(validation)
    raise errors.InvalidArgumentError(
        f"`validation` is {validation!r}; expected a function without arguments that "
        "returns {metric: value}, a pair (estimator, eval_spec), or an object with a "
        "method `run(session, report)` (see "
        "hookbridge.adapters.session_loop.validation.Validation)."
    )
