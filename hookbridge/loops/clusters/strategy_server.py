"""A worker or server of `ParameterServerStrategy`: it serves until its chief ends."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import time
from typing import Any

import tensorflow as tf

from hookbridge import exit_codes
from hookbridge.adapters.parameter_server.exit import exit_code
from hookbridge.cluster import ClusterConfig
from hookbridge.exit_threads import ExitThreads
from hookbridge.loops.group_stop.around_session import end_with
from hookbridge.loops.group_stop.board import CALL_MS, code_handle
from hookbridge.loops.tasks.ports import is_listening

POLL_SECS = 0.5
# How long the chief may be out of reach before its servers end.
LOST_SECS = 2.0
# How long the chief may take from its last wait to the start of its own server.
HANDOVER_SECS = 10.0
PROTOCOL = "grpc"


def serve(config: ClusterConfig, *, start_secs: float) -> None:
    """Serves as this task until the chief's process is gone, then ends the process."""
    # A worker may hold a thread of another task while it waits for a variable: with
    # fewer threads servers could deadlock.
    threads = max(len(config.cluster["worker"]) + 1, os.cpu_count() or 1)
    server = tf.distribute.Server(
        tf.train.ClusterSpec(dict(config.cluster)),
        job_name=config.task_type,
        task_index=config.task_index,
        protocol=PROTOCOL,
        config=tf.compat.v1.ConfigProto(inter_op_parallelism_threads=threads),
    )
    job_code = _Code(config, config.task_type, config.task_index)
    chief = f"chief at {config.cluster['chief'][0]}"
    last_seen, allowed_secs = time.monotonic(), start_secs
    lost = f"no {chief} came within {start_secs:g} s"
    # The chief listens until its process has ended in any way.
    while True:
        if is_listening(config, "chief", 0):
            last_seen, allowed_secs = time.monotonic(), HANDOVER_SECS
            lost = f"the {chief} ended before it began the job"
        elif (code := job_code.read()) not in (None, exit_codes.LOST):
            end_with(code, f"the {chief} has ended; see what it printed")
            del server
            raise SystemExit(exit_codes.DONE)
        else:
            if code is not None:
                lost = f"the {chief} has ended; see what it printed"
            limit = allowed_secs if code is None else LOST_SECS
            if time.monotonic() - last_seen > limit:
                end_with(exit_codes.LOST, lost)
        time.sleep(POLL_SECS)


def tell_servers(config: ClusterConfig) -> None:
    """Tells every server that the job has begun, and at the end of the chief its code.

    A server that is not told again, because the chief was killed, ends as one that lost
    it.
    """
    tasks = [
        (job, i) for job in ("worker", "ps") for i in range(len(config.cluster[job]))
    ]

    def tell(task: tuple[str, int], code: int) -> None:
        if is_listening(config, *task):
            with contextlib.suppress(tf.errors.OpError, RuntimeError):
                _Code(config, *task).write(code)

    def tell_all(threads: ExitThreads, code: int) -> None:
        calls = [functools.partial(tell, task, code) for task in tasks]
        threads.run(calls, time.monotonic() + CALL_MS / 1000)

    tell_all(ExitThreads(len(tasks)), exit_codes.LOST)
    at_exit = ExitThreads(len(tasks))
    atexit.register(lambda: tell_all(at_exit, exit_code()))


class _Code:
    """The exit code of the job, as a variable in the server of one task."""

    def __init__(self, config: ClusterConfig, job: str, index: int) -> None:
        device = f"/job:{job}/task:{index}"
        self._graph = tf.Graph()
        with self._graph.as_default(), tf.device(device):
            handle = code_handle(job, index)
            self._value = tf.compat.v1.placeholder(tf.int64, [])
            self._write = tf.raw_ops.AssignVariableOp(
                resource=handle, value=self._value
            )
            self._read = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.int64)
        self._target = f"{PROTOCOL}://{config.cluster[job][index]}"
        self._config = tf.compat.v1.ConfigProto(
            device_filters=[device], operation_timeout_in_ms=CALL_MS
        )

    def write(self, code: int) -> None:
        """Writes it."""
        self._run(self._write, {self._value: code})

    def read(self) -> int | None:
        """What the chief has written."""
        with contextlib.suppress(tf.errors.OpError):
            return int(self._run(self._read))
        return None

    def _run(self, fetch: Any, feeds: Any = None) -> Any:
        with tf.compat.v1.Session(
            self._target, graph=self._graph, config=self._config
        ) as session:
            return session.run(fetch, feeds)
