"""A task of `ParameterServerStrategy` that serves, and what the chief says of it."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import re
import time
from collections.abc import Sequence
from typing import NoReturn

import tensorflow as tf

from hookbridge import errors, exit_codes
from hookbridge.adapters.parameter_server.exit import exit_code
from hookbridge.cluster import ClusterConfig
from hookbridge.exit_threads import ExitThreads
from hookbridge.loops.clusters.serve import POLL_SECS, until_left
from hookbridge.loops.group_stop.around_session import end_with
from hookbridge.loops.group_stop.board import CALL_MS, Ending, Notes, left_note
from hookbridge.loops.tasks.ports import Task, is_listening

# How long the chief may be out of reach before its servers end.
LOST_SECS = 2.0
PROTOCOL = "grpc"


def servers(config: ClusterConfig) -> list[Task]:
    """The tasks that serve."""
    return [
        (job, i) for job in ("worker", "ps") for i in range(len(config.cluster[job]))
    ]


def serve(config: ClusterConfig, *, start_secs: float) -> NoReturn:
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
    try:
        ending = until_left(
            config, server.target, [config.chief], LOST_SECS, start_secs
        )
        while is_listening(config, *config.chief):  # the end of its process needs us
            time.sleep(POLL_SECS)
    except errors.TaskLostError as e:
        ending = Ending(str(e), exit_codes.LOST)
    end_with(ending.code, ending.reason)
    del server
    raise SystemExit(exit_codes.DONE)


def tell_servers(config: ClusterConfig, tasks: Sequence[Task]) -> None:
    """Tells servers the exit code of this process, the chief, at its end.

    A server that is not told, because the chief was killed, ends as one that lost it.
    """

    def tell(code: int, job: str, index: int) -> None:
        if is_listening(config, job, index):
            target = f"{PROTOCOL}://{config.cluster[job][index]}"
            with (
                contextlib.suppress(tf.errors.OpError, RuntimeError),
                contextlib.closing(
                    Notes(target, f"/job:{job}/task:{index}", open_ms=CALL_MS)
                ) as notes,
            ):
                notes.write(left_note(*config.chief), code)

    def tell_all() -> None:
        calls = [functools.partial(tell, exit_code(), *task) for task in tasks]
        threads.run(calls, time.monotonic() + CALL_MS / 1000)

    threads = ExitThreads(len(tasks))
    atexit.register(tell_all)


# What the coordinator logs about each step that fails because of a lost server, and
# about others that fail with it.
_LOST_SERVER = re.compile(
    r"(?s)(Remote function on worker|error when processing closure).*"
    r"(remote target /job:ps/|This derived error is ignored)"
)


def shorten_log() -> None:
    """Hides the records about a lost server: the error of `fit` names it."""
    tf.get_logger().addFilter(lambda r: not _LOST_SERVER.search(r.getMessage()))
