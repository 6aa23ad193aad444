"""The threads of a process that follow the others and wake its main thread."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import tensorflow as tf

from hookbridge.loops.tasks.ports import Liveness

if TYPE_CHECKING:
    from hookbridge.loops.group_stop.member import GroupStop

POLL_SECS = 2.0
START_POLL_SECS = 0.5  # until all others have been seen
# A worker whose step does not end by itself after a stop is interrupted after this.
INTERRUPT_SECS = 4.0
# A process whose main thread nothing can wake ends itself after this.
LAST_RESORT_SECS = 8.0
# So long may a synchronous step take, if a worker is gone, before another one is
# let through in its place.
STALL_SECS = 3.0


class StepWatch:
    """What the main thread does at the moment, and how it is woken.

    Attributes:
      began: when the step began in which it is; None between steps.
      interrupted: whether its last step was ended from here.
      let_one_through: lets one worker go that waits in `SyncReplicasOptimizer`;
        None where there is none.
      interrupt: ends any other step; None if it may not be ended.
    """

    def __init__(self) -> None:
        self.began: float | None = None
        self.interrupted = False
        self.let_one_through: Callable[[], None] | None = None
        self.interrupt: Callable[[], None] | None = None

    def wake(self, over: threading.Event) -> None:
        """After a stop: wakes the main thread where it waits for others."""
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


def watch(group: GroupStop) -> None:
    """Starts the threads that follow the others, until the job is over."""
    for target in (_follow_stop, _follow_tasks):
        threading.Thread(target=target, args=(group,), daemon=True).start()


def _follow_stop(group: GroupStop) -> None:
    while not group.over.is_set():
        try:
            if group.wait_for_stop():
                return
        except (tf.errors.OpError, RuntimeError):  # gone, or closed by `leave`
            group.over.wait(0.5)


def _follow_tasks(group: GroupStop) -> None:
    # No TensorFlow here: a call to a server that is gone may never return.
    config = group.config
    own = (config.task_type, config.task_index)
    needed = {config.chief} | {("ps", i) for i in range(len(config.cluster["ps"]))}
    workers = {("worker", i) for i in range(len(config.cluster.get("worker", ())))}
    followed = needed | workers if config.is_chief else needed
    liveness = Liveness(config, sorted(followed - {own}))
    liveness.look()
    while not group.over.wait(POLL_SECS if liveness.complete else START_POLL_SECS):
        liveness.look()
        # One may have come and gone between two looks.
        away = liveness.away(group.lost_secs, unseen_secs=group.lost_secs)
        gone = [task for task in away if task in needed]
        if gone and not group.stopped:
            error = group.lost(gone, group.lost_secs)
            group.fail(error)
        if group.error is not None:
            _last_resort(group)
            return
        missing = liveness.away(0.0, unseen_secs=group.lost_secs)
        if missing and group.step.is_stalled() and not group.stopped:
            # The gradient of the worker that is gone is missing, and the token it
            # had with it: the step would wait for ever.
            let_through = group.step.let_one_through
            if let_through is not None:
                threading.Thread(target=let_through, daemon=True).start()


def _last_resort(group: GroupStop) -> None:
    # A main thread inside TensorFlow that waits for a server which is gone cannot be
    # woken by all means; a process that stays for ever is worse than one that ends
    # like this.
    if not group.over.wait(LAST_RESORT_SECS):
        sys.stderr.write(f"hookbridge: ClusterError: {group.error}\n")
        sys.stderr.flush()
        os._exit(1)
