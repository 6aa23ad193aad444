"""Tasks that serve until the job is over, in a session cluster or a strategy."""

from __future__ import annotations

import atexit
import contextlib
import functools
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

import tensorflow as tf
from absl import logging

from hookbridge import errors
from hookbridge.adapters.parameter_server.exit import exit_code
from hookbridge.ground.processes import exit_codes
from hookbridge.ground.processes.exit_threads import ExitThreads, start_awaited
from hookbridge.ground.processes.signals import on_sigterm
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.jobs.loops.group_stop.around_session import end_with
from hookbridge.jobs.loops.group_stop.board import (
    CALL_MS,
    JobStop,
    Notes,
    left_note,
    stop_job,
)
from hookbridge.jobs.loops.tasks.ports import Liveness, Task, is_listening, named
from hookbridge.jobs.loops.tasks.server import (
    device_of,
    own_device,
    start_server,
    target_of,
)
from hookbridge.jobs.loops.tasks.task_checks import tasks_of, trainers

POLL_SECS = 0.2
LOOK_SECS = 2.0
# How long the other tasks may take to leave after the chief has left: tasks that listen
# (Estimator's workers sleep up to 60 seconds before they begin), tasks that have never
# listened, and tasks that no longer listen.
AFTER_CHIEF_ALIVE_SECS = 90.0
AFTER_CHIEF_UNSEEN_SECS = 5.0
AFTER_CHIEF_GONE_SECS = 1.0
# How long the chief of a strategy may be out of reach before its servers end.
LOST_SECS = 4.0
# What a parameter server of a strategy writes at SIGTERM; its chief looks for it.
PREEMPTED_NOTE = "preempted"
FOLLOW_SECS = 1.0
# Threads of a strategy's server in addition to those that steps may hold. Without them
# the note that the chief has left came seconds late, or never, in some jobs of which a
# task had been stopped for a while.
NOTE_THREADS = 8


def serve(
    config: ClusterConfig, target: str, *, lost_secs: float, start_secs: float
) -> JobStop:
    """Return how the job has ended when every task that trains has left.

    SIGTERM stops the job, so that its chief saves while the variables are still there.
    """
    preempted = threading.Event()

    def preempt() -> None:
        preempted.set()
        reason = f"{config.task_type} {config.task_index}: it received SIGTERM"
        with contextlib.suppress(tf.errors.OpError, RuntimeError):
            if is_listening(config, "ps", 0):  # else a call would wait for it
                stop_job(target, config, JobStop(reason, exit_codes.PREEMPTED))

    with on_sigterm(preempt):
        tasks = trainers(config)
        return until_left(config, target, tasks, lost_secs, start_secs, preempted)


def until_left(
    config: ClusterConfig,
    target: str,
    tasks: Sequence[Task],
    lost_secs: float,
    start_secs: float,
    preempted: threading.Event,
) -> JobStop:
    """Return how the job has ended when `tasks`, the chief first, have left.

    Once the chief has left, this does not wait for tasks that were killed. Once
    `preempted` is set, it waits only while one of them listens.
    """
    liveness = Liveness(config, tasks)
    began, looked = time.monotonic(), -math.inf  # it looks at once
    chief_left: float | None = None
    with contextlib.closing(Notes(target, own_device(config))) as notes:
        names = [left_note(*task) for task in tasks]
        while not all(flags := notes.are_written(names)):
            now = time.monotonic()
            if flags[0] and chief_left is None:
                chief_left = now
            if chief_left is not None:
                here = [t for t, has in zip(tasks, flags, strict=True) if not has]
                if _is_over_without(config, here, liveness, now - chief_left):
                    break
            elif preempted.is_set():
                if not _are_listening(config, tasks):
                    reason = "SIGTERM came, and no task trains"
                    return JobStop(reason, exit_codes.PREEMPTED)
            elif now - looked > LOOK_SECS:
                looked, secs = now, now - began
                if not _are_there(config, tasks, liveness, secs, lost_secs, start_secs):
                    _check_that_chief_left(config, tasks, notes, lost_secs)
            time.sleep(POLL_SECS)
        code = int(notes.read(names[0]) or exit_codes.LOST)
    return JobStop("the job is over and not done; see what its chief printed", code)


def _is_over_without(
    config: ClusterConfig, tasks: Sequence[Task], liveness: Liveness, waited_secs: float
) -> bool:
    """Return whether to wait no longer for `tasks`; if so, warn about them."""
    liveness.look()
    is_late = waited_secs > AFTER_CHIEF_UNSEEN_SECS
    missing = liveness.away(
        AFTER_CHIEF_GONE_SECS, unseen_secs=0.0 if is_late else math.inf
    )
    is_over = set(tasks) <= set(missing) or waited_secs > AFTER_CHIEF_ALIVE_SECS
    if is_over:
        logging.warning(
            "hookbridge: the job is over, but %s never reported that it had finished.",
            named(config, tasks),
        )
    return is_over


def _are_listening(config: ClusterConfig, tasks: Sequence[Task]) -> bool:
    """Return whether any of the tasks listens at its address."""
    return any(is_listening(config, *task) for task in tasks)


def _are_there(
    config: ClusterConfig,
    tasks: Sequence[Task],
    liveness: Liveness,
    waited_secs: float,
    lost_secs: float,
    start_secs: float,
) -> bool:
    """Return whether a task is there, or may come; raise if none ever came."""
    liveness.look()
    # A task may have come and gone between two looks.
    missing = liveness.away(lost_secs, unseen_secs=lost_secs)
    if not liveness.arrivals and waited_secs > start_secs:
        raise errors.TaskLostError(
            f"No task that trains came within {start_secs:g} s; expected "
            f"{named(config, tasks)}. Start them, with the same "
            "TF_CONFIG['cluster'], unless the job is over."
        )
    return not liveness.arrivals or len(missing) < len(tasks)


def _check_that_chief_left(
    config: ClusterConfig, tasks: Sequence[Task], notes: Notes, lost_secs: float
) -> None:
    """Raise if the first of the tasks, which are all away, has not left.

    Its note is read after the look at the tasks: on a busy machine it may have left
    between the two.
    """
    if not all(notes.are_written([left_note(*tasks[0])])):
        raise errors.TaskLostError(
            f"All tasks that trained disappeared {lost_secs:g} s ago without "
            f"finishing: {named(config, tasks)}. They were killed, or do not use "
            "hookbridge's loops: see what they printed. Start the job again: it goes "
            "on from its last checkpoint."
        )


def serve_strategy(config: ClusterConfig, *, start_secs: float) -> NoReturn:
    """Serve a strategy until its chief is gone; then end the process.

    SIGTERM to a parameter server stops the job: its chief, which reads the note of it,
    saves while the variables are still there. A worker that gets it ends alone.
    """
    # A worker may hold a thread of another task while it waits for a variable: with
    # fewer threads servers could deadlock.
    threads = max(len(config.cluster["worker"]) + 1, os.cpu_count() or 1)
    options = tf.compat.v1.ConfigProto(
        inter_op_parallelism_threads=threads + NOTE_THREADS
    )
    server = start_server(config, options)
    target, preempted = server.target, threading.Event()

    def preempt() -> None:
        preempted.set()
        with contextlib.closing(Notes(target, own_device(config))) as notes:
            notes.write(PREEMPTED_NOTE, "")

    holds_values = config.task_type == "ps"
    try:
        with on_sigterm(preempt) if holds_values else contextlib.nullcontext():
            ending = until_left(
                config,
                target,
                [config.chief],
                LOST_SECS,
                start_secs,
                preempted=preempted,
            )
            while is_listening(config, *config.chief):  # its process needs us
                time.sleep(POLL_SECS)
    except errors.TaskLostError as e:
        ending = JobStop(str(e), exit_codes.LOST)
    end_with(ending.code, ending.reason)
    del server
    raise SystemExit(exit_codes.DONE)


def follow_servers(config: ClusterConfig, preempt: Callable[[], None]) -> None:
    """Call `preempt`, on a thread, once a parameter server says it received SIGTERM.

    Args:
      config: the cluster, in which this process is the chief.
      preempt: called once.
    """
    over = threading.Event()

    def says_so(task: Task) -> bool:
        if not is_listening(config, *task):
            return False
        with (
            contextlib.suppress(tf.errors.OpError, RuntimeError),
            contextlib.closing(_notes_of(config, *task)) as notes,
        ):
            return all(notes.are_written([PREEMPTED_NOTE]))
        return False

    def follow() -> None:
        while not over.wait(FOLLOW_SECS):
            for job, index in tasks_of(config, "ps"):
                if says_so((job, index)):
                    logging.warning(
                        "hookbridge: ps %d received SIGTERM; the job saves and ends.",
                        index,
                    )
                    preempt()
                    return

    start_awaited(over, follow)


def tell_servers(config: ClusterConfig) -> None:
    """Tell every server the exit code of this process, the chief, at its end.

    A server that is not told, because the chief was killed, ends as one that lost it.
    """

    def tell(code: int, job: str, index: int) -> None:
        if is_listening(config, job, index):
            with (
                contextlib.suppress(tf.errors.OpError, RuntimeError),
                contextlib.closing(_notes_of(config, job, index)) as notes,
            ):
                notes.write(left_note(*config.chief), code)

    def tell_all() -> None:
        calls = [functools.partial(tell, exit_code(), *task) for task in tasks]
        threads.run(calls, time.monotonic() + CALL_MS / 1000)

    tasks = tasks_of(config, "worker", "ps")
    threads = ExitThreads(len(tasks))
    atexit.register(tell_all)


def _notes_of(config: ClusterConfig, job: str, index: int) -> Notes:
    """Return the notes on a task's server, which may end while they are opened."""
    target, device = target_of(config, job, index), device_of(job, index)
    return Notes(target, device, open_ms=CALL_MS)
