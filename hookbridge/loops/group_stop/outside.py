"""The stop of a job from a process that is no part of its cluster."""

from __future__ import annotations

import contextlib
import dataclasses
import time

import tensorflow as tf

from hookbridge.cluster import ClusterConfig
from hookbridge.loops.group_stop.board import StopBoard
from hookbridge.loops.group_stop.evaluator import JobEnd
from hookbridge.loops.tasks import ports

POLL_SECS = 0.5


def stop_from_outside(config: ClusterConfig, reason: str, end: JobEnd) -> None:
    """Stops a job; one that has not begun as soon as it does.

    Args:
      config: the job's cluster.
      reason: why, with the task that asks.
      end: tells whether the job is over by itself, which ends the wait for its begin.

    Raises:
      errors.ClusterError: the chief is gone without having said that it is over.
    """
    while not end.is_over():
        end.check()
        if ports.is_listening(config, "ps", 0):  # a call would wait for it
            with contextlib.suppress(tf.errors.OpError):  # it may be over by now
                if _stop(config, reason):
                    return
        time.sleep(POLL_SECS)


def _stop(config: ClusterConfig, reason: str) -> bool:
    # Parameter server 0 itself runs the few operations that this takes.
    server = dataclasses.replace(config, task_type="ps", task_index=0)
    board = StopBoard("grpc://" + config.cluster["ps"][0], server)
    try:
        generation = board.generation()
        if generation:  # there is a chief
            board.stop(generation, reason)
        return generation > 0
    finally:
        board.close()
