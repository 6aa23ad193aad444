"""The evaluator's side of a stop: a marker file says that the job is over."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from absl import logging

from hookbridge import errors
from hookbridge.adapters.state import storage
from hookbridge.ground.arguments import path, seconds
from hookbridge.ground.processes import exit_codes
from hookbridge.ground.processes.signals import on_sigterm
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.jobs.loops.group_stop.around_session import (
    end_with,
    stop_is_no_error,
    stop_of_all,
)
from hookbridge.jobs.loops.group_stop.board import JobStop, stop_job
from hookbridge.jobs.loops.group_stop.member import LOST_SECS, GroupStop
from hookbridge.jobs.loops.tasks import ports
from hookbridge.jobs.loops.tasks.server import own_target

FILE = "hookbridge_stop.json"
POLL_SECS = 0.5
# A marker that the evaluator finds when it starts is from an earlier run, or from this
# run if the evaluator is late. It counts after the chief has been away for this long.
LATE_SECS = 60.0


def write_marker(model_dir: str, ending: JobStop) -> None:
    """Write that the job in `model_dir` is over; call it after the last checkpoint."""
    path = tf.io.gfile.join(model_dir, FILE)
    text = json.dumps({"run": uuid.uuid4().hex, **ending._asdict()})
    tf.io.gfile.makedirs(model_dir)
    storage.write(path, text.encode())


@contextlib.contextmanager
def ending_together(
    group: GroupStop, model_dir: str | None, leave: Callable[[], None], target: str = ""
) -> Iterator[None]:
    """Make the training in the block end with its job, and the job with it.

    SIGTERM ends it, an error ends all tasks (`stop_of_all`), and the process ends if
    the job is not done.

    Args:
      group: this process's part of the job.
      model_dir: the folder in which evaluators see the end; None if there is none.
      leave: is called after the training, however it ends.
      target: the address of the task's own server; empty if it has none.
    """
    if model_dir:
        look = JobEnd(model_dir, group.config).ask_ending
        group.ask_ending = look
    try:
        with on_sigterm(functools.partial(_terminate, group)):
            try:
                with stop_is_no_error(group), stop_of_all(group, target):
                    yield
            except BaseException as error:
                _mark(group, model_dir, error)
                raise
            _mark(group, model_dir)
    finally:
        leave()
    end_with(group.code, group.reason)


def _terminate(group: GroupStop) -> None:
    """Stop the job if this is the chief, which saves for all; else only this task."""
    if group.config.is_chief:
        group.request("it received SIGTERM", exit_codes.PREEMPTED)
    else:
        group.stop_here("this task received SIGTERM", exit_codes.PREEMPTED)


def _mark(
    group: GroupStop, model_dir: str | None, error: BaseException | None = None
) -> None:
    """Write the marker on the chief; an error of writing never replaces `error`."""
    if not (model_dir and group.config.cluster and group.config.is_chief):
        return
    code = group.code or (exit_codes.of_error(error) if error else exit_codes.DONE)
    reason = group.reason or ("it failed" if error else "it ended")
    try:
        write_marker(model_dir, JobStop(reason, code))
    except Exception as e:
        if error is None:
            raise
        logging.error("hookbridge: evaluators cannot be stopped: %s", e)


def read_marker(model_dir: str) -> str | None:
    """Return the content of the marker, different for each run; None without one."""
    path = tf.io.gfile.join(model_dir, FILE)
    try:
        with tf.io.gfile.GFile(path, "r") as file:
            return str(file.read())
    except tf.errors.NotFoundError:
        return None


def _ending(text: str) -> JobStop:
    fields = json.loads(text)
    return JobStop(fields["reason"], fields.get("code", exit_codes.DONE))


class JobEnd:
    """Tells from outside a cluster whether its job is over.

    The chief may be away for `lost_secs` after it has been seen. If an earlier run has
    ended in `model_dir`, a chief that was never seen is awaited for `LATE_SECS`.
    """

    def __init__(
        self, model_dir: str, config: ClusterConfig, *, lost_secs: float = LOST_SECS
    ) -> None:
        self._model_dir = model_dir
        self._lost_secs = seconds("lost_secs", lost_secs)
        self._before = read_marker(model_dir)
        self._began = time.monotonic()
        tasks = [config.chief] if config.cluster else []
        self._chief = ports.Liveness(config, tasks)

    def ask_ending(self) -> JobStop | None:
        """Return how the job has ended, even if before this object was made."""
        self._chief.look()
        text = read_marker(self._model_dir)
        waited = time.monotonic() - self._began
        is_late = not self._chief.arrivals and waited > LATE_SECS
        return _ending(text) if text and (text != self._before or is_late) else None

    def check(self) -> None:
        """Raise `errors.ClusterError` if the chief left without writing the marker."""
        if self._chief.away(self._lost_secs):
            raise errors.TaskLostError(
                f"The chief is gone{ports.lasting(self._lost_secs)} and has not said "
                f"that the job is over (in {self._model_dir}); expected it to train on "
                "or to end. It was killed: see what it printed, and start the job "
                "again."
            )


def checkpoints_until_stop(
    model_dir: str, config: ClusterConfig | None = None, *, lost_secs: float = LOST_SECS
) -> Iterator[str]:
    """Yield the checkpoints of a job as they appear, until the job is over.

    For an evaluator. It gets the last checkpoint, but skips a checkpoint if a newer one
    appeared while it was busy. Where an earlier run has ended, it waits a minute for a
    chief.

    Args:
      model_dir: where the chief saves.
      config: the cluster; None takes `TF_CONFIG`.
      lost_secs: how long the chief may be away after it has been seen.

    Yields:
      Paths of checkpoints, without suffix.

    Raises:
      errors.InvalidArgumentError: an argument has a bad value.
      errors.TaskLostError: the chief is gone and has not marked the job as over.
      SystemExit: after the last checkpoint, if the job is over and not done.
    """
    config = ClusterConfig.of(config)
    model_dir = path("model_dir", model_dir)
    end = JobEnd(model_dir, config, lost_secs=lost_secs)
    yield from checkpoints_until(end, model_dir)


def checkpoints_until(end: JobEnd, model_dir: str) -> Iterator[str]:
    """Yield what `checkpoints_until_stop` yields, with a given `JobEnd`.

    Args:
      end: tells whether the job has ended.
      model_dir: the folder with the checkpoints.
    """
    newest: str | None = None
    while True:
        ending = end.ask_ending()
        # Looked up after the marker, so that the last checkpoint is not missed.
        path: Any = tf.train.latest_checkpoint(model_dir)
        if path and path != newest:
            newest = path
            yield path
        if ending is not None:
            end_with(ending.code, ending.reason)
            return
        end.check()
        time.sleep(POLL_SECS)


def stop_from_outside(config: ClusterConfig, reason: str, end: JobEnd) -> None:
    """Stop a job from a process outside its cluster.

    A job that has not begun is stopped as soon as it begins.

    Args:
      config: the cluster of the job.
      reason: why it stops, for the messages of its processes.
      end: tells whether the job has ended by itself meanwhile.
    """
    # Parameter server 0 itself runs the few operations of a stop.
    server = dataclasses.replace(config, task_type="ps", task_index=0)
    while end.ask_ending() is None:
        end.check()
        if ports.is_listening(config, "ps", 0):  # else a call would wait for it
            with contextlib.suppress(tf.errors.OpError):  # it may be over by now
                if stop_job(own_target(server), server, JobStop(reason)):
                    return
        time.sleep(POLL_SECS)
