"""Validation by an Estimator on the variables of the running session."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from typing import Any

from hookbridge import errors
from hookbridge.adapters import log_sources
from hookbridge.adapters.validation import ValidationReport


def _batch_reporter(report: ValidationReport) -> Any:
    import tensorflow as tf

    class Reporter(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
        """Tells `report` about each run of an evaluation session."""

        def begin(self) -> None:
            self._batch = 0
            graph = tf.compat.v1.get_default_graph()
            self._metrics = {
                source.key: source.tensor
                for source in log_sources.find_eval_sources({}, graph)
            }

        def before_run(self, run_context: Any) -> Any:
            report.batch_begin(self._batch)
            return tf.compat.v1.train.SessionRunArgs(self._metrics)

        def after_run(self, run_context: Any, run_values: Any) -> None:
            report.batch_end(self._batch, run_values.results)
            self._batch += 1

    return Reporter()


class EstimatorValidation:
    """Evaluates `(estimator, eval_spec)` at the session's current variables.

    The variables are written to a temporary checkpoint and
    `Estimator.evaluate` is given its path, so that the result belongs to the very
    step at which the epoch ended, whatever the interval of the loop's own
    checkpoints. The evaluation's hooks (`eval_spec.hooks`) run as always.

    Args:
      estimator: a `tf.estimator.Estimator`.
      eval_spec: a `tf.estimator.EvalSpec`: `input_fn`, `steps`, `hooks`, `name`.
    """

    def __init__(self, estimator: Any, eval_spec: Any) -> None:
        if not callable(getattr(estimator, "evaluate", None)) or not hasattr(
            eval_spec, "input_fn"
        ):
            raise errors.InvalidArgumentError(
                f"`validation` is the pair ({estimator!r}, {eval_spec!r}); expected "
                "(tf.estimator.Estimator, tf.estimator.EvalSpec)."
            )
        self._estimator = estimator
        self._spec = eval_spec

    def run(self, session: Any, report: ValidationReport) -> Mapping[str, float]:
        folder = tempfile.mkdtemp(prefix="hookbridge_validation_")
        try:
            path = _save(session, os.path.join(folder, "model.ckpt"))
            result: Mapping[str, float] = self._estimator.evaluate(
                self._spec.input_fn,
                steps=self._spec.steps,
                hooks=[*(self._spec.hooks or ()), _batch_reporter(report)],
                checkpoint_path=path,
                name=self._spec.name,
            )
            return result
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _save(session: Any, prefix: str) -> str:
    """Writes the session's saveable variables as a TF1 checkpoint.

    The values are fetched and written by an eager op: the graph is finalized, and
    the loop's own saver would count the file among those it keeps.
    """
    import tensorflow as tf

    from hookbridge.adapters import checkpoint_files

    with session.graph.as_default():
        variables = tf.compat.v1.global_variables()
    values = session.run({v.op.name: v for v in variables})
    return checkpoint_files.write(prefix, values)
