"""The threads that follow the other processes and wake the main thread."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import tensorflow as tf

from hookbridge import errors, exit_codes
from hookbridge.cluster import ClusterConfig
from hookbridge.loops.tasks.ports import Liveness

POLL_SECS = 2.0
START_POLL_SECS = 0.5  # until all other processes have been seen
# If a worker's step goes on after a stop, it is interrupted after this time.
INTERRUPT_SECS = 4.0
# If nothing wakes the main thread after an error, the process exits after this time.
LAST_RESORT_SECS = 8.0
# How long a synchronous step may take while a worker is gone. After that another
# worker is released in its place.
STALL_SECS = 3.0


class StepWatch:
    """The main thread's current step, and how to wake that thread."""

    def __init__(self) -> None:
        self.began: float | None = None
        self.interrupted = False
        # Releases one worker that waits in `SyncReplicasOptimizer`.
        self.let_one_through: Callable[[], None] | None = None
        # Ends any other step; None if steps must not be ended.
        self.interrupt: Callable[[], None] | None = None

    def release_by(self, call: Callable[[], None]) -> None:
        """Replaces `let_one_through`."""
        self.let_one_through = call

    def wake(self, over: threading.Event) -> None:
        """After a stop, wakes the main thread if it waits for other processes."""
        if self.let_one_through is not None:
            self.let_one_through()
        began = self.began
        if over.wait(INTERRUPT_SECS) or began is None or self.began != began:
            return
        if self.interrupt is not None:
            self.interrupted = True
            self.interrupt()

    def is_stalled(self) -> bool:
        """Whether a step takes so long that it may wait for a worker that is gone."""
        return self.began is not None and time.monotonic() - self.began > STALL_SECS


class Followed(Protocol):
    """The part of `GroupStop` that the threads use."""

    config: ClusterConfig
    lost_secs: float
    error: errors.ClusterError | None
    step: StepWatch
    over: threading.Event

    @property
    def stopped(self) -> bool: ...

    def wait_for_stop(self) -> bool: ...

    def fail(self, error: errors.ClusterError) -> None: ...

    def lost(
        self, tasks: Sequence[tuple[str, int]], secs: float
    ) -> errors.ClusterError: ...


def watch(group: Followed) -> None:
    """Starts the threads that follow the other processes until the job is over."""
    for target in (_follow_stop, _follow_tasks):
        threading.Thread(target=target, args=(group,), daemon=True).start()


def _follow_stop(group: Followed) -> None:
    while not group.over.is_set():
        try:
            if group.wait_for_stop():
                return
        except (tf.errors.OpError, RuntimeError):  # gone, or closed by `leave`
            group.over.wait(0.5)


def _follow_tasks(group: Followed) -> None:
    # This thread does not call TensorFlow: a call to a lost server may never return.
    config = group.config
    own = (config.task_type, config.task_index)
    needed = {config.chief} | {("ps", i) for i in range(len(config.cluster["ps"]))}
    workers = {("worker", i) for i in range(len(config.cluster.get("worker", ())))}
    followed = needed | workers if config.is_chief else needed
    liveness = Liveness(config, sorted(followed - {own}))
    liveness.look()
    while not group.over.wait(POLL_SECS if liveness.complete else START_POLL_SECS):
        liveness.look()
        # A task may have come and gone between two looks.
        away = liveness.away(group.lost_secs, unseen_secs=group.lost_secs)
        needed_away = [task for task in away if task in needed]
        if needed_away and not group.stopped:
            group.fail(group.lost(needed_away, group.lost_secs))
        if group.error is not None:
            _last_resort(group)
            return
        missing = liveness.away(0.0, unseen_secs=group.lost_secs)
        if missing and group.step.is_stalled() and not group.stopped:
            # The gradient and the token of the lost worker are missing: without them
            # the step would wait for ever.
            let_through = group.step.let_one_through
            if let_through is not None:
                threading.Thread(target=let_through, daemon=True).start()


def _last_resort(group: Followed) -> None:
    # Nothing is sure to wake a main thread that waits inside TensorFlow for a lost
    # server. A process that ends like this is better than one that hangs.
    if not group.over.wait(LAST_RESORT_SECS):
        sys.stderr.write(f"hookbridge: ClusterError: {group.error}\n")
        sys.stderr.flush()
        os._exit(exit_codes.LOST)
