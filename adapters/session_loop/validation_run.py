"""Validation within a training run, with the `on_test_*` events of callbacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hookbridge.adapters.session_loop import monitors as monitor_checks
from hookbridge.adapters.session_loop import values
from hookbridge.adapters.session_loop.validation import as_validation

if TYPE_CHECKING:
    from hookbridge.adapters.session_loop.run import SessionRun


class ValidationRun:
    """Runs a validation in mid-training and reports it to the callbacks.

    Args:
      run: the training run it belongs to.
      validation: what the user gave.
    """

    def __init__(self, run: SessionRun, validation: Any) -> None:
        self._run = run
        self._validation = as_validation(validation)
        self._first = True
        begin = getattr(self._validation, "begin", None)
        if callable(begin):
            begin()

    def __bool__(self) -> bool:
        return self._validation is not None

    @property
    def metric_names(self) -> list[str] | None:
        """Names of the metrics without prefix, or None if they show only later."""
        names = getattr(self._validation, "metric_names", None)
        return None if names is None else [str(n) for n in names]

    def run(self) -> Mapping[str, float]:
        """Validates once; `on_test_begin`, its batches, `on_test_end`.

        Returns:
          `{metric: value}` without prefix.
        """
        assert self._validation is not None
        counters = self._run.model._live_counters
        self._run.deliver("on_test_begin", {})
        counters.count("test", 0)
        result = values.as_test_logs(
            self._validation.run(self._run.session, _Report(self._run))
        )
        self._run.deliver("on_test_end", dict(result))
        if self._first:
            self._first = False
            self._run.model.note_test_metrics(result)
            monitor_checks.check_val_monitors(self._run.group, list(result))
        return result


class _Report:
    """Makes callback events of a validation's batches."""

    def __init__(self, run: SessionRun) -> None:
        self._run = run

    def batch_begin(self, batch: int) -> None:
        self._run.deliver("on_test_batch_begin", batch, {})

    def batch_end(self, batch: int, logs: Mapping[str, Any]) -> None:
        self._run.model._live_counters.count("test")
        self._run.deliver("on_test_batch_end", batch, values.as_test_logs(logs))
