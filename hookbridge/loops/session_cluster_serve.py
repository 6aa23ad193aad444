"""A parameter server that returns when the job is over."""

from __future__ import annotations

import time

import tensorflow as tf
from absl import logging

from hookbridge import errors
from hookbridge.loops.cluster import CHIEF_TYPES, ClusterConfig
from hookbridge.loops.group_stop_board import CONTAINER, done_queue
from hookbridge.loops.session_cluster_ports import Liveness

POLL_SECS = 1.0
# After the chief has left, the others were stopped and have this long to follow.
AFTER_CHIEF_SECS = 6.0


def trainers(config: ClusterConfig) -> list[tuple[str, int]]:
    """`(job, index)` of the tasks that compute gradients, the chief first."""
    return [
        (job, index)
        for job in (*CHIEF_TYPES, "worker")
        for index in range(len(config.cluster.get(job, ())))
    ]


def serve(
    config: ClusterConfig, target: str, *, lost_secs: float, start_secs: float
) -> None:
    """Returns when every task that trains has left.

    A task that was killed is not waited for once the chief has left.

    Raises:
      errors.ClusterError: nobody came, or all that trained are gone for too long
        without having left.
    """
    tasks = trainers(config)
    waiting = {f"{job} {index}" for job, index in tasks}
    chief = f"{tasks[0][0]} 0"
    liveness = Liveness(config, tasks, lost_secs=lost_secs)
    began = looked = time.monotonic()
    chief_left: float | None = None
    own = f"/job:ps/task:{config.task_index}"
    with tf.Graph().as_default() as graph, graph.container(CONTAINER):
        leaving = done_queue(config.task_index).dequeue()
        options = tf.compat.v1.RunOptions(timeout_in_ms=int(POLL_SECS * 1000))
        session = tf.compat.v1.Session(
            target, config=tf.compat.v1.ConfigProto(device_filters=[own])
        )
        with session:
            while waiting:
                now = time.monotonic()
                try:
                    name = session.run(leaving, options=options).decode()
                    waiting.discard(name)
                    if name == chief:
                        chief_left = time.monotonic()
                    continue
                except tf.errors.DeadlineExceededError:
                    pass
                if chief_left is not None:
                    if now - chief_left > AFTER_CHIEF_SECS:
                        logging.warning(
                            "hookbridge: %s did not take leave; the job is over.",
                            ", ".join(sorted(waiting)),
                        )
                        return
                elif now - looked > POLL_SECS * 4:
                    looked = now
                    _check(tasks, liveness, config, now - began, lost_secs, start_secs)


def _check(
    tasks: list[tuple[str, int]],
    liveness: Liveness,
    config: ClusterConfig,
    waited_secs: float,
    lost_secs: float,
    start_secs: float,
) -> None:
    gone = liveness.lost()
    if len(gone) == len(tasks):
        raise errors.ClusterError(
            "All tasks that trained are gone without having left, since "
            f"{lost_secs:g} s: {', '.join(f'`{j}` {i}' for j, i in gone)}. "
            "They were killed, or do not use `SessionCluster`: see what they printed. "
            "Start the job again: it goes on from its last checkpoint."
        )
    if not liveness.seen and waited_secs > start_secs:
        raise errors.ClusterError(
            f"No task that trains came within {start_secs:g} s; `ps` "
            f"{config.task_index} expected "
            f"{', '.join(f'`{j}` {i}' for j, i in tasks)}. Start them, with the same "
            "TF_CONFIG['cluster']."
        )
