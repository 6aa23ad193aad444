"""A parameter server that returns when the job is over."""

from __future__ import annotations

import math
import time

import tensorflow as tf
from absl import logging

from hookbridge import errors
from hookbridge.cluster import ClusterConfig
from hookbridge.loops.group_stop.board import left_queue
from hookbridge.loops.tasks.jobs import trainers
from hookbridge.loops.tasks.ports import Liveness

POLL_SECS = 0.2
LOOK_SECS = 2.0
# How long the other tasks may take to leave after the chief has left: tasks that listen
# (Estimator's workers sleep up to 60 seconds before they begin), tasks that have never
# listened, and tasks that no longer listen.
AFTER_CHIEF_ALIVE_SECS = 90.0
AFTER_CHIEF_UNSEEN_SECS = 5.0
AFTER_CHIEF_GONE_SECS = 1.0


def serve(
    config: ClusterConfig, target: str, *, lost_secs: float, start_secs: float
) -> None:
    """Returns when every task that trains has left.

    Once the chief has left, this does not wait for tasks that were killed.

    Raises:
      errors.ClusterError: no task came, or all tasks that trained disappeared for too
        long without leaving.
    """
    tasks = trainers(config)
    liveness = Liveness(config, tasks)
    began = looked = time.monotonic()
    chief_left: float | None = None
    own = f"/job:ps/task:{config.task_index}"
    with tf.Graph().as_default():
        left = [left_queue(config.task_index, *task).is_closed() for task in tasks]
        session = tf.compat.v1.Session(
            target, config=tf.compat.v1.ConfigProto(device_filters=[own])
        )
        with session:
            while not all(gone := session.run(left)):
                now = time.monotonic()
                if gone[0] and chief_left is None:
                    chief_left = now
                if chief_left is not None:
                    here = [t for t, has in zip(tasks, gone, strict=True) if not has]
                    if _is_over_without(here, liveness, now - chief_left):
                        logging.warning(
                            "hookbridge: the job is over, and %s did not take leave.",
                            ", ".join(f"`{job}` {index}" for job, index in here),
                        )
                        return
                elif now - looked > LOOK_SECS:
                    looked = now
                    _check(tasks, liveness, now - began, lost_secs, start_secs)
                time.sleep(POLL_SECS)


def _is_over_without(
    tasks: list[tuple[str, int]], liveness: Liveness, waited_secs: float
) -> bool:
    """Whether to stop waiting for `tasks`, which have not left yet."""
    liveness.look()
    is_late = waited_secs > AFTER_CHIEF_UNSEEN_SECS
    missing = liveness.away(
        AFTER_CHIEF_GONE_SECS, unseen_secs=0.0 if is_late else math.inf
    )
    return set(tasks) <= set(missing) or waited_secs > AFTER_CHIEF_ALIVE_SECS


def _check(
    tasks: list[tuple[str, int]],
    liveness: Liveness,
    waited_secs: float,
    lost_secs: float,
    start_secs: float,
) -> None:
    liveness.look()
    # A task may have come and gone between two looks.
    gone = liveness.away(lost_secs, unseen_secs=lost_secs)
    if liveness.seen and len(gone) == len(tasks):
        raise errors.ClusterError(
            "All tasks that trained are gone without having left, since "
            f"{lost_secs:g} s: {', '.join(f'`{j}` {i}' for j, i in gone)}. "
            "They were killed, or do not use `SessionCluster`: see what they printed. "
            "Start the job again: it goes on from its last checkpoint."
        )
    if not liveness.seen and waited_secs > start_secs:
        raise errors.ClusterError(
            f"No task that trains came within {start_secs:g} s; expected "
            f"{', '.join(f'`{j}` {i}' for j, i in tasks)}. Start them, with the same "
            "TF_CONFIG['cluster']."
        )
