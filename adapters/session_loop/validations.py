"""Validations of a training run: of which kind, and with the events of callbacks."""

from __future__ import annotations

import contextlib
import inspect
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

import numpy as np
import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.session_graph import estimator_stack, eval_log_sources, saved
from hookbridge.adapters.session_loop import monitors, values
from hookbridge.adapters.session_loop.session_run import SessionRun
from hookbridge.ground import compat
from hookbridge.ground.arguments import shown, with_arguments, without_arguments
from hookbridge.ground.protocols import RunContext, RunValues, Session
from hookbridge.ground.validation import Validation, ValidationReport


class _BatchReporter(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Reports each run of an evaluation session as a batch."""

    def __init__(self, report: ValidationReport) -> None:
        self._report = report
        self.metrics: dict[str, Any] = {}  # what is fetched, in the order of `logs`

    def begin(self) -> None:
        self._batch = 0
        sources = eval_log_sources.find({}, tf.compat.v1.get_default_graph())
        self.metrics = {source.key: source.tensor for source in sources}

    def before_run(self, run_context: RunContext) -> Any:
        self._report.batch_begin(self._batch)
        return tf.compat.v1.train.SessionRunArgs(self.metrics)

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        self._report.batch_end(self._batch, run_values.results)
        self._batch += 1


class _GraphSeenError(Exception):
    """Ends an evaluation whose graph was all that was wanted."""


class _NamesOfGraph(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Reads the names of metrics from an evaluation graph, and ends the evaluation."""

    found: list[str] = []  # noqa: RUF012 - never changed

    def begin(self) -> None:
        sources = eval_log_sources.find({}, tf.compat.v1.get_default_graph())
        self.found = [source.key for source in sources]
        raise _GraphSeenError


class EstimatorValidation:
    """Evaluates `(estimator, eval_spec)` at the session's current variables.

    They are written to a temporary checkpoint for `Estimator.evaluate`: the result is
    that of the step at which the epoch ended, whatever the loop itself saves.
    `eval_spec.hooks` run as always.
    """

    def __init__(self, estimator: Any, eval_spec: Any) -> None:
        if not callable(getattr(estimator, "evaluate", None)) or not hasattr(
            eval_spec, "input_fn"
        ):
            raise errors.InvalidArgumentError(
                f"`validation` is the pair ({shown(estimator)}, {shown(eval_spec)}); "
                "expected (tf.estimator.Estimator, tf.estimator.EvalSpec)."
            )
        self._estimator = estimator
        self._spec = eval_spec
        self._saver: Any = None

    def begin(self) -> None:
        """Looks for the saver that the model_fn of the training made itself."""
        graph = tf.compat.v1.get_default_graph()
        self._saver = estimator_stack.scaffold_saver(graph)

    def look(self) -> list[str]:
        """The names of what an evaluation makes, from its graph."""
        names = _NamesOfGraph()
        with contextlib.suppress(_GraphSeenError):
            # The hook ends the evaluation before it looks for the checkpoint.
            self._estimator.evaluate(
                self._spec.input_fn, steps=1, hooks=[names], checkpoint_path="none"
            )
        return names.found

    def run(self, session: Session, report: ValidationReport) -> Mapping[str, float]:
        folder = tempfile.mkdtemp(prefix="hookbridge_validation_")
        try:
            prefix = os.path.join(folder, "model.ckpt")
            # Written by an eager op: the graph is finalized, and the loop's own saver
            # would count the file among those it keeps.
            entries = (
                saved.entries_of_graph(session.graph)
                if self._saver is None
                else saved.entries_of_saver(self._saver, session.graph)
            )
            path = saved.write(prefix, session.run(entries))
            reporter = _BatchReporter(report)
            result: Mapping[str, float] = self._estimator.evaluate(
                self._spec.input_fn,
                steps=self._spec.steps,
                hooks=[*(self._spec.hooks or ()), reporter],
                checkpoint_path=path,
                name=self._spec.name,
            )
            # An Estimator sorts its result by name; `logs` has its own order.
            order = [key for key in reporter.metrics if key in result]
            return {key: result[key] for key in [*order, *result]}
        finally:
            shutil.rmtree(folder, ignore_errors=True)


class UserValidation:
    """A user's `run(session, report)`, whose results are checked."""

    def __init__(self, run: Callable[..., Any], source: object = None) -> None:
        self._run = run
        self._source = source

    def run(self, session: Session, report: ValidationReport) -> Mapping[str, float]:
        result = self._run(session, report)
        good = isinstance(result, Mapping) and all(
            isinstance(key, str) and np.asarray(value).dtype.kind in "fiub"
            for key, value in result.items()
        )
        if not good:
            raise errors.InvalidArgumentError(
                f"`validation=` returned {shown(result)}; expected a dict "
                "`{metric name: number}`."
            )
        return cast(Mapping[str, float], result)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def _takes_session(function: Any) -> bool:
    """Whether a function needs one argument."""
    try:
        signature = inspect.signature(function)
        signature.bind(None)
        signature.bind()
    except TypeError:
        return len(signature.parameters) == 1
    except ValueError:  # some builtins have no signature
        pass
    return False


def _without_arguments(validation: Any) -> Any:
    try:
        return without_arguments("validation", validation)
    except errors.InvalidArgumentError as e:
        raise errors.InvalidArgumentError(
            f"{str(e).removesuffix('.')}, or with the session as its one argument."
        ) from e


def as_validation(validation: Any) -> Validation | None:
    """What a user gave as `validation=` as a `Validation`."""
    if validation is None:
        return None
    if not inspect.isclass(validation) and isinstance(validation, Validation):
        run = with_arguments("validation.run", validation.run, "session", "report")
        return UserValidation(run, validation)
    if isinstance(validation, (tuple, list)) and len(validation) == 2:
        return EstimatorValidation(*validation)
    if callable(validation) and not inspect.isclass(validation):
        if _takes_session(validation):
            return UserValidation(
                lambda session, report: validation(session), validation
            )
        function = _without_arguments(validation)

        def run_eagerly(session: Session, report: ValidationReport) -> Any:
            with compat.private("eager_mode")():  # as methods of callbacks
                return function()

        return UserValidation(run_eagerly, validation)
    raise errors.InvalidArgumentError(
        f"`validation` is {shown(validation)}; expected a function of the session, or "
        "without arguments, that returns {metric: value}, a pair (estimator, "
        "eval_spec), or an object with a method `run(session, report)` (see "
        "hookbridge.ground.validation.Validation)."
    )


class _NoReport:
    """The report of a validation whose batches nobody is told of."""

    def batch_begin(self, batch: int) -> None:
        """Nothing."""

    def batch_end(self, batch: int, logs: Mapping[str, Any]) -> None:
        """Nothing."""


class ValidationRun:
    """Runs a validation in mid-training; its batches become events of callbacks."""

    def __init__(self, run: SessionRun) -> None:
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
        """Validates once, with all events; returns the metrics without prefix."""
        assert self._validation is not None
        run = self._run
        run.deliver("on_test_begin", {})
        run.model.live_link.count("test", 0)
        result = values.as_test_logs(self._validation.run(run.session, self))
        run.deliver("on_test_end", dict(result))
        self._check(result)
        return result

    def logs_after(self, epoch: int) -> Mapping[str, Any]:
        """The `val_*` logs at the end of an epoch; none if it is not validated here."""
        run = self._run
        if self and run.validates_here() and run.config.validates_after(epoch):
            return values.as_val_logs(self.run())
        return {}

    def _check(self, result: Collection[str]) -> None:
        """Compares the first result with what callbacks monitor."""
        if not self._checked:
            self._checked = True
            self._run.model.note_test_metrics(result)
            training = self._run.model.metrics_names
            monitors.check_val_monitors(self._run.config, training, list(result))

    def look(self) -> None:
        """Validates before the first step if only that tells what callbacks monitor."""
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
            self._check(self._validation.look())
            return
        result = self._validation.run(self._run.session, _NoReport())
        self._check(values.as_test_logs(result))

    def batch_begin(self, batch: int) -> None:
        self._run.deliver("on_test_batch_begin", batch, {})

    def batch_end(self, batch: int, logs: Mapping[str, Any]) -> None:
        self._run.model.live_link.count("test")
        self._run.deliver("on_test_batch_end", batch, values.as_test_logs(logs))
