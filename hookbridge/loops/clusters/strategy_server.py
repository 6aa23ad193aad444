"""A task of `ParameterServerStrategy` that serves, and what the chief says of it."""

from __future__ import annotations

import atexit
import contextlib
import functools
import logging
import os
import re
import time

import tensorflow as tf

from hookbridge import exit_codes
from hookbridge.adapters.parameter_server.exit import exit_code
from hookbridge.cluster import ClusterConfig
from hookbridge.exit_threads import ExitThreads
from hookbridge.loops.group_stop.around_session import end_with
from hookbridge.loops.group_stop.board import CALL_MS, Notes
from hookbridge.loops.tasks.ports import is_listening

POLL_SECS = 0.5
# How long the chief may be out of reach before its servers end.
LOST_SECS = 2.0
# How long the chief may take from its last wait to the start of its own server.
HANDOVER_SECS = 10.0
PROTOCOL = "grpc"
CODE = "exit_code"  # the note on each server: the exit code of the job


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
    chief = f"chief at {config.cluster['chief'][0]}"
    last_seen, allowed_secs = time.monotonic(), start_secs
    lost = f"no {chief} came within {start_secs:g} s"
    # The chief listens until its process has ended in any way.
    while True:
        if is_listening(config, "chief", 0):
            last_seen, allowed_secs = time.monotonic(), HANDOVER_SECS
            lost = f"the {chief} ended before it began the job"
        elif (code := _job_code(config)) not in (None, exit_codes.LOST):
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


def _job_code(config: ClusterConfig) -> int | None:
    """What the chief has told this server; None if nothing."""
    task = (config.task_type, config.task_index)
    with (
        contextlib.suppress(tf.errors.OpError),
        contextlib.closing(_notes(config, *task)) as notes,
    ):
        text = notes.read(CODE)
        return None if text is None else int(text)
    return None


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
            with (
                contextlib.suppress(tf.errors.OpError, RuntimeError),
                contextlib.closing(_notes(config, *task)) as notes,
            ):
                notes.write(CODE, code)

    def tell_all(threads: ExitThreads, code: int) -> None:
        calls = [functools.partial(tell, task, code) for task in tasks]
        threads.run(calls, time.monotonic() + CALL_MS / 1000)

    tell_all(ExitThreads(len(tasks)), exit_codes.LOST)
    at_exit = ExitThreads(len(tasks))
    atexit.register(lambda: tell_all(at_exit, exit_code()))


def _notes(config: ClusterConfig, job: str, index: int) -> Notes:
    """A connection to the server of one task."""
    target = f"{PROTOCOL}://{config.cluster[job][index]}"
    return Notes(target, f"/job:{job}/task:{index}", open_ms=CALL_MS)


# Found in every record of the coordinator about a failed step.
_RECORDS = re.compile(r"Remote function on worker|error when processing closure")
_DERIVED = "This derived error is ignored"  # another record says what failed
_SERVER = re.compile(r"remote target /job:ps/replica:0/task:(\d+)")


def shorten_log(config: ClusterConfig) -> None:
    """Shows on the terminal only one line for each lost server.

    The user's own handlers, for example of files, get every record.
    """
    logger = tf.get_logger()
    # The first record about each server; several threads write them.
    first: dict[int, logging.LogRecord] = {}

    def is_shown(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        server = _SERVER.search(text)
        if not _RECORDS.search(text) or not (server or _DERIVED in text):
            return True
        if server and first.setdefault(int(server[1]), record) is record:
            index = int(server[1])
            logger.error(
                "hookbridge: parameter server %d (%s) is lost, which ends the fit. See "
                "what it printed, and start the job again: it goes on from its last "
                "checkpoint.",
                index,
                config.cluster["ps"][index],
            )
        # A filter of the terminal's handlers would miss those that are made later.
        for handler in (*logger.handlers, *logging.getLogger().handlers):
            if type(handler) is not logging.StreamHandler:
                handler.handle(record)
        return False

    logger.addFilter(is_shown)
