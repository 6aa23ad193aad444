"""What a user gives as `validation=`: an Estimator, a function, or an object."""

from __future__ import annotations

import contextlib
import inspect
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from typing import Any, cast

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.session_graph import estimator_stack, eval_log_sources, saved
from hookbridge.ground import compat
from hookbridge.ground.arguments import shown, with_arguments
from hookbridge.ground.protocols import RunContext, RunValues, Session
from hookbridge.ground.single_number import as_number
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
    """Stops the evaluation once its graph is built."""


class _NamesOfGraph(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Reads the names of metrics from an evaluation graph, and ends the evaluation."""

    def begin(self) -> None:
        sources = eval_log_sources.find({}, tf.compat.v1.get_default_graph())
        self.found: list[str] = [source.key for source in sources]
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
        """Look for the saver that the model_fn of the training made itself."""
        self._saver = estimator_stack.scaffold_saver(tf.compat.v1.get_default_graph())

    def names_of_graph(self) -> list[str]:
        """Return the names of what an evaluation makes, from its graph."""
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
            path = saved.write(prefix, saved.fetch(session, entries))
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
        result = self._result(session, report)
        is_dict = isinstance(result, Mapping) and all(
            isinstance(k, str) for k in result
        )
        numbers = {k: as_number(v) for k, v in result.items()} if is_dict else {}
        if not is_dict or None in numbers.values():
            raise errors.InvalidArgumentError(
                f"`validation=` returned {shown(result)}; expected a dict "
                f"`{{metric name: number}}`.{_how_to_run(result)}"
            )
        for key in numbers:
            if f"val_{key}" in numbers:
                raise errors.InvalidArgumentError(
                    f'`validation=` returned "{key}" and "val_{key}", which are the '
                    f'same entry of `logs`; expected one of them. Leave "val_{key}" '
                    "out: the prefix is added."
                )
        return cast(Mapping[str, float], numbers)

    def _result(self, session: Session, report: ValidationReport) -> Any:
        """Return what the user's function returns.

        The error names the function if it has fed too little.
        """
        try:
            return self._run(session, report)
        except tf.errors.InvalidArgumentError as e:
            if "You must feed a value" not in e.message:
                raise
            raise errors.InvalidArgumentError(
                "`validation=` ran tensors of the graph without a value that they "
                "need; expected the batch of the validation: `lambda session: "
                '{"loss": session.run(loss, {x: ..., y: ...})}`. TensorFlow says: '
                f"{e.message.splitlines()[0]}"
            ) from e

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def _how_to_run(result: object) -> str:
    """Return how to get numbers, if a result has tensors of a graph."""
    values: Any = result.values() if isinstance(result, Mapping) else [result]
    for value in values:
        if tf.is_symbolic_tensor(value) or hasattr(value, "initializer"):
            return (
                f' "{value.name}" has a value only in a run of the session; run it: '
                "`lambda session: session.run({...}, {x: ..., y: ...})`."
            )
    return ""


def _validation_by_function(function: Any) -> UserValidation:
    """Return the validation of a function without arguments, or of the session."""
    try:
        with_arguments("validation", function)
    except errors.InvalidArgumentError as e:
        with contextlib.suppress(errors.InvalidArgumentError):
            with_arguments("validation", function, "session")
            return UserValidation(lambda session, report: function(session), function)
        raise errors.InvalidArgumentError(
            f"{str(e).removesuffix('.')}, or with the session as its one argument."
        ) from e

    def run_eagerly(session: Session, report: ValidationReport) -> Any:
        with compat.private("eager_mode")():  # as methods of callbacks
            return function()

    return UserValidation(run_eagerly, function)


def as_validation(validation: object) -> Validation | None:
    """Return what a user gave as `validation=` as a `Validation`."""
    if validation is None:
        return None
    if not inspect.isclass(validation) and isinstance(validation, Validation):
        run = with_arguments("validation.run", validation.run, "session", "report")
        return UserValidation(run, validation)
    if isinstance(validation, (tuple, list)) and len(validation) == 2:
        return EstimatorValidation(*validation)
    if callable(validation) and not inspect.isclass(validation):
        return _validation_by_function(validation)
    raise errors.InvalidArgumentError(
        f"`validation` is {shown(validation)}; expected a function of the session, "
        "or without arguments, that returns {metric: value}, a pair (estimator, "
        "eval_spec), or an object with a method `run(session, report)` (see "
        "`hb.Validation`)."
    )
