"""`hb.recorder`: the guest that writes a reference run, in either loop."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import tensorflow as tf
from absl import logging

from hookbridge.adapters.guests import roles
from hookbridge.ground import compat
from hookbridge.ground.arguments import count, instance, path
from hookbridge.ground.protocols import RunContext, RunValues, Session
from hookbridge.reference.record.fit_step import FitFetches, is_of_fit
from hookbridge.reference.record.graph_step import SessionFetches
from hookbridge.reference.recordings.array_norms import whole_gradient
from hookbridge.reference.recordings.recording_writer import (
    Writer,
    checked_options,
    new_folder,
    records_here,
)

v1 = tf.compat.v1

# Kinds of variables that each step reads; the others are in the first file alone.
_FOLLOWED = ("weight", "state", "counter")


def recorder(
    directory: object,
    *,
    steps: int = 20,
    weights_every: int | None = None,
    gradients: Literal["norms", "whole"] = "norms",
    max_megabytes: float = 1024,
    then_stop: bool = False,
) -> Any:
    """Return a hook that records the first steps of a training.

        hooks = hb.as_hooks([hb.recorder("reference/")])
        model.fit(x, y, callbacks=hb.as_callbacks([hb.recorder("port/")]))

    For each step it writes the batch, the loss and the fetched metrics, the learning
    rate, the norms of gradients, and how far each variable moved; `hb.record` is
    something else, the report of a run. The run itself does the same as without it. In
    a cluster the chief records its own steps.

    It is called on the thread of the loop. A recorder records one training.

    Args:
      directory: the folder of the recording, which has none yet.
      steps: how many training steps are recorded.
      weights_every: whole variables are kept after each this many steps, after the
        first and the last one, and, if they are small, after the first five. An error
        that ends the training leaves out the last one.
      gradients: "norms" of each variable's gradient, and the whole gradients of the
        steps at the start; or the gradients "whole" of all steps.
      max_megabytes: how large the recording may become.
      then_stop: whether the training is asked to stop after these steps.

    Returns:
      A `SessionRunHook`.

    Raises:
      errors.InvalidArgumentError: an argument has a bad value, the folder has a
        recording, or, in a step, the recording would become too large.
      errors.UnwritableError: the folder cannot be written.
    """
    folder = path("directory", directory, "a folder")
    steps = count("steps", steps)
    instance("then_stop", then_stop, bool, "a bool")
    options = checked_options(weights_every, gradients, max_megabytes)
    hook = Recorder(folder, steps, then_stop=then_stop, **options)
    return roles.set_role(hook, "chief")


class Recorder(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """The hook of `recorder`; `options` are those of `Writer`."""

    # What `fit` has to know before it traces its step: a second trace of the step would
    # draw other random numbers.
    fetched: tuple[str, ...] = (
        "loss:0",
        "gradients/:0",
        "batch/:0",
        "learning_rate:0",
    )

    def __init__(
        self, directory: str, steps: int, *, then_stop: bool, **options: Any
    ) -> None:
        self._directory = directory
        self._steps, self._then_stop = steps, then_stop
        self._options = options
        self._source: Any = None
        self._writer: Writer | None = None
        self._fetches: Any = None
        self._is_closed = False
        self._followed: dict[str, Any] = {}

    @property
    def is_done(self) -> bool:
        """Return whether all steps are recorded."""
        return self._writer is not None and self._writer.steps >= self._steps

    def begin(self) -> None:
        """Find out in which loop it is."""
        graph = v1.get_default_graph()
        if not records_here():
            return
        new_folder(self._directory)
        self._writer, self._is_closed = None, False
        self._source = FitFetches(graph) if is_of_fit(graph) else SessionFetches(graph)

    def before_run(self, run_context: RunContext) -> Any:
        """Ask for the tensors of a step."""
        source = self._source
        if source is None or (self.is_done and not source.fetches_on):
            return None
        self._fetches = source.fetches(run_context)
        if self._fetches is None:
            return None
        if self._writer is None:
            self._begin(run_context.session)
        return v1.train.SessionRunArgs(self._fetches)

    def _begin(self, session: Session) -> None:
        """Write the variables before the first step."""
        variables = list(self._source.variables())
        values = _values(session, {name: variable for name, _, variable in variables})
        kinds = {name: kind for name, kind, _ in variables if name in values}
        self._followed = {
            n: v for n, kind, v in variables if kind in _FOLLOWED and n in values
        }
        facts = {
            **self._source.facts(),
            "random_ops": self._source.random_ops(self._fetches),
            "versions": compat.installed_versions(),
        }
        self._writer = Writer(self._directory, facts, **self._options)
        self._writer.begin(values, kinds)
        _save_checkpoint(os.path.join(self._directory, "checkpoint"), values)

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Write the step, with the variables after it."""
        results, self._fetches = run_values.results, None
        writer = self._writer
        if results is None or writer is None or self.is_done:
            return
        after = run_context.session.run(self._followed)
        shapes = {n: after[n].shape for n in results["gradients"] if n in after}
        applied = _dense_ones(results["applied"], shapes)
        line = _line(results)
        line["applied_norms"] = {
            name: float(np.linalg.norm(value)) for name, value in applied.items()
        }
        writer.step(
            line,
            variables=after,
            batch=results["batch"],
            gradients=_dense_ones(results["gradients"], shapes),
        )
        if self.is_done:
            self._close(writer)
            if self._then_stop:
                run_context.request_stop()

    def _close(self, writer: Writer) -> None:
        """Write the end, with what known mistakes of porting would give."""
        if not self._is_closed:
            self._is_closed = True
            writer.note(**self._source.variations(self._directory))
        writer.close()

    def end(self, session: Session) -> None:
        """End the recording of a training that had fewer steps, or none."""
        if self._writer is not None:
            self._close(self._writer)
        elif self._source is not None:
            logging.warning(
                "hb.recorder(%r): nothing was recorded. No run moved the global step. "
                "If there is no global step, no run updated variables by an optimizer "
                "of TensorFlow. In a session, train with `minimize(loss, "
                "global_step=tf.compat.v1.train.get_or_create_global_step())`.",
                self._directory,
            )


def _values(session: Session, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the variables that have one in a plain session."""
    try:
        values: dict[str, Any] = session.run(dict(variables))
        return values
    except tf.errors.FailedPreconditionError:
        values = {}
    for name, variable in variables.items():
        with contextlib.suppress(tf.errors.FailedPreconditionError):
            values[name] = session.run(variable)
    return values


def _line(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a step, and which gradients are of rows alone."""
    line: dict[str, Any] = {
        name: float(np.mean(results[name]))
        for name in ("loss", "learning_rate")
        if name in results
    }
    line["metrics"] = {n: float(np.mean(v)) for n, v in results["metrics"].items()}
    rows = [name for name, parts in results["gradients"].items() if len(parts) > 1]
    return {**line, "of_rows": rows} if rows else line


def _dense_ones(
    gradients: Mapping[str, list[Any]], shapes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return gradients as whole arrays, by the shapes of their variables."""
    return {n: whole_gradient(p, shapes.get(n)) for n, p in gradients.items()}


def _save_checkpoint(folder: str, values: Mapping[str, Any]) -> None:
    """Write a checkpoint of values, in a graph of its own."""
    os.makedirs(folder, exist_ok=True)
    prefix = os.path.join(os.path.abspath(folder), "model.ckpt-0")
    with tf.Graph().as_default(), v1.Session() as session:
        fed = {name: v1.placeholder(value.dtype) for name, value in values.items()}
        save = tf.raw_ops.SaveV2(
            prefix=prefix,
            tensor_names=list(fed),
            shape_and_slices=[""] * len(fed),
            tensors=list(fed.values()),
        )
        session.run(save, {fed[name]: value for name, value in values.items()})
    with open(os.path.join(folder, "checkpoint"), "w", encoding="utf-8") as file:
        file.write('model_checkpoint_path: "model.ckpt-0"\n')
