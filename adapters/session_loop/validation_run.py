"""Validation within a training run, with the `on_test_*` events of callbacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookbridge.adapters.session_loop import monitors, values
from hookbridge.adapters.session_loop.run import SessionRun
from hookbridge.adapters.session_loop.validations import as_validation


class ValidationRun:
    """Runs a validation in mid-training and reports it to the callbacks."""

    def __init__(self, run: SessionRun) -> None:
        self._run = run
        self._validation = as_validation(run.config.validation)
        self._first = True
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
        """Validates once, with all events; returns the metrics without prefix."""
        assert self._validation is not None
        run = self._run
        run.deliver("on_test_begin", {})
        run.model.live_link.count("test", 0)
        result = values.as_test_logs(self._validation.run(run.session, _Report(run)))
        run.deliver("on_test_end", dict(result))
        if self._first:
            self._first = False
            run.model.note_test_metrics(result)
            monitors.check_val_monitors(run.config, list(result))
        return result


class _Report:
    """Turns each batch of a validation into events of the callbacks."""

    def __init__(self, run: SessionRun) -> None:
        self._run = run

    def batch_begin(self, batch: int) -> None:
        self._run.deliver("on_test_batch_begin", batch, {})

    def batch_end(self, batch: int, logs: Mapping[str, Any]) -> None:
        self._run.model.live_link.count("test")
        self._run.deliver("on_test_batch_end", batch, values.as_test_logs(logs))
