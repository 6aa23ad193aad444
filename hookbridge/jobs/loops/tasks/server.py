"""The TensorFlow server of one task, its sessions, and a limit for their close."""

from __future__ import annotations

import concurrent.futures
import sys
import threading
import time
import weakref
from typing import Any

import tensorflow as tf
from absl import logging

from hookbridge.ground.patching import Patches
from hookbridge.ground.processes.cluster_checks import SERVER_TYPES
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.ground.protocols import Session
from hookbridge.jobs.loops.tasks import ports

v1 = tf.compat.v1

PROTOCOL = "grpc"
# How long a server may take to list its devices.
ANSWER_SECS = 5.0


def start_server(config: ClusterConfig, session_config: object) -> Any:
    """Start the server of this task of a cluster, on its port.

    Args:
      config: the cluster, and which task this process is.
      session_config: the server's `ConfigProto`, or None.

    Raises:
      errors.ClusterError: another program has the port.
    """
    ports.check_own_port(config)
    members = {
        j: list(hosts) for j, hosts in config.cluster.items() if j in SERVER_TYPES
    }
    return tf.distribute.Server(
        members,
        job_name=config.task_type,
        task_index=config.task_index,
        config=session_config,
    )


def answers(config: ClusterConfig, job: str, index: int) -> bool:
    """Return whether a TensorFlow server of this task listens at its address.

    Another program may have the port, or the server of another task. It has
    `ANSWER_SECS` to answer.

    Args:
      config: the cluster that has the task.
      job: the job of the task, such as "ps".
      index: its number in the job.
    """
    probe = v1.ConfigProto(
        device_filters=[device_of(job, index)],
        operation_timeout_in_ms=int(ANSWER_SECS * 1000),
    )
    target = target_of(config, job, index)
    try:
        with tf.Graph().as_default(), v1.Session(target, config=probe) as session:
            return bool(session.list_devices())
    except tf.errors.OpError:
        return False


def device_of(job: str, index: int) -> str:
    """Return the name of a task as a device."""
    return f"/job:{job}/task:{index}"


def target_of(config: ClusterConfig, job: str, index: int) -> str:
    """Return the session target of a task's server."""
    return f"{PROTOCOL}://{config.cluster[job][index]}"


def own_device(config: ClusterConfig) -> str:
    """Return the name of this task as a device."""
    return device_of(config.task_type, config.task_index)


def own_target(config: ClusterConfig) -> str:
    """Return the session target of this process's server; "" without a cluster."""
    task = config.task_type, config.task_index
    return target_of(config, *task) if config.cluster else ""


# How long closing may take. An iterator of `tf.data` in the session can delay it for a
# minute, with nothing left to do (docs/decisions/0005-iterators-die-young.md).
CLOSE_SECS = 3.0


def limit_close(session: Session, limit_secs: float = CLOSE_SECS) -> None:
    """Make `session.close()` return in time, even if the session is not closed yet.

    A thread goes on closing it; the process does not end before that thread.

    Args:
      session: the session, whose `close` is replaced.
      limit_secs: for how long `close` waits.
    """
    reference = weakref.ref(session)
    begun = threading.Event()

    def close() -> None:
        session = reference()
        # A deleted session calls this too, perhaps when threads can no longer start.
        if session is None or begun.is_set():
            return
        begun.set()
        closed: concurrent.futures.Future[None] = concurrent.futures.Future()
        # Not a daemon: a thread that returns from TensorFlow while the interpreter ends
        # would abort the process. It keeps the session alive meanwhile.
        threading.Thread(target=_close, args=(session, closed), daemon=False).start()
        try:
            error = closed.exception(limit_secs)
        except concurrent.futures.TimeoutError:
            logging.warning(
                "hookbridge: closing the session takes longer than %g s and goes on in "
                "the background.",
                limit_secs,
            )
        else:
            if error is not None and sys.exc_info()[0] is None:
                raise error  # not if the session closes because of another error

    Patches(session, {"close": close}).install()


def _close(session: Session, closed: concurrent.futures.Future[None]) -> None:
    began = time.monotonic()
    try:
        closed.set_result(type(session).close(session))
    except BaseException as e:
        closed.set_exception(e)
    if time.monotonic() - began > CLOSE_SECS / 10:
        time.sleep(0.2)  # lets threads end that waited for the session
