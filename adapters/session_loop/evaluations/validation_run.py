"""A validation in mid-training, with the events of callbacks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hookbridge.adapters.session_loop.evaluations.validations import (
    EstimatorValidation,
    as_validation,
)
from hookbridge.adapters.session_loop.shared import guest_errors, monitors, values
from hookbridge.adapters.session_loop.shared.callback_run import CallbackRun


class _NoReport:
    """The report of a validation whose batches nobody hears of."""

    def batch_begin(self, batch: int) -> None:
        """Do nothing."""

    def batch_end(self, batch: int, logs: Mapping[str, Any]) -> None:
        """Do nothing."""


class ValidationRun:
    """Runs a validation in mid-training; its batches become events of callbacks."""

    def __init__(self, run: CallbackRun) -> None:
        self._run = run
        self._validation = as_validation(run.config.validation)
        self._checked = False  # whether what it makes was compared with the monitors
        begin = getattr(self._validation, "begin", None)
        if callable(begin):
            begin()

    def __bool__(self) -> bool:
        return self._validation is not None

    @property
    def metric_names(self) -> list[str] | None:
        """Names of the metrics without prefix, or None if only a run shows them."""
        names = getattr(self._validation, "metric_names", None)
        return None if names is None else [str(n) for n in names]

    def run(self) -> Mapping[str, float]:
        """Validate once, with all events; return the metrics without prefix."""
        assert self._validation is not None
        run = self._run
        run.deliver("on_test_begin", {})
        run.model.live_link.counters.count("test", 0)
        made = guest_errors.validate(self._validation, run.session, self)
        result = values.as_test_logs(made)
        run.deliver("on_test_end", dict(result))
        self._check(result)
        return result

    def logs_after(self, epoch: int) -> Mapping[str, Any]:
        """Validate after an epoch; return `val_*` logs, empty without validation."""
        run = self._run
        if self and run.validates_here() and run.config.validates_after(epoch):
            return {f"val_{key}": value for key, value in self.run().items()}
        return {}

    def _check(self, result: Collection[str]) -> None:
        """Compare the first result with what callbacks monitor."""
        if not self._checked:
            self._checked = True
            self._run.model.live_link.counters.test_metrics = tuple(result)
            monitors.check_val_monitors(
                self._run.config, self._run.model.metrics_names, list(result)
            )

    def check_monitors(self) -> None:
        """Validate before the first step if only that tells what callbacks monitor."""
        config = self._run.config
        if (
            self._checked
            or self._validation is None
            or self.metric_names is not None
            or config.missing_metric != "refuse"
            or not monitors.val_monitors(config)
        ):
            return
        if isinstance(self._validation, EstimatorValidation):
            self._check(self._validation.names_of_graph())
            return
        result = guest_errors.validate(self._validation, self._run.session, _NoReport())
        self._check(values.as_test_logs(result))

    def batch_begin(self, batch: int) -> None:
        self._run.deliver("on_test_batch_begin", batch, {})

    def batch_end(self, batch: int, logs: Mapping[str, Any]) -> None:
        self._run.model.live_link.counters.count("test")
        self._run.deliver("on_test_batch_end", batch, values.as_test_logs(logs))
