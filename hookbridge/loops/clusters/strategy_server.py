"""A worker or server of `ParameterServerStrategy`: it serves until its chief ends."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import tensorflow as tf

from hookbridge.cluster import ClusterConfig
from hookbridge.loops.tasks.ports import has_server, is_listening

POLL_SECS = 0.5
# How long the chief may be out of reach before its servers end.
LOST_SECS = 2.0
# How long the chief may take from its last wait to the start of its own server.
HANDOVER_SECS = 10.0
PROTOCOL = "grpc"


def server_config(config: ClusterConfig) -> Any:
    """A `ConfigProto` with enough threads that servers cannot deadlock.

    Each worker may hold a thread of another task while it waits for a variable.
    """
    threads = max(len(config.cluster["worker"]) + 1, os.cpu_count() or 1)
    return tf.compat.v1.ConfigProto(inter_op_parallelism_threads=threads)


def serve(config: ClusterConfig, *, start_secs: float) -> None:
    """Serves as this task until the chief's process is gone, then ends the process.

    Raises:
      SystemExit: always, see `parameter_server_strategy`.
    """
    server = tf.distribute.Server(
        tf.train.ClusterSpec(dict(config.cluster)),
        job_name=config.task_type,
        task_index=config.task_index,
        protocol=PROTOCOL,
        config=server_config(config),
    )
    began = time.monotonic()
    seen: float | None = None
    allowed_secs = HANDOVER_SECS
    chief = f"chief at {config.cluster['chief'][0]}"
    while True:
        now = time.monotonic()
        # The chief's server listens until its process has ended in any way.
        if is_listening(config, "chief", 0):
            if allowed_secs != LOST_SECS and has_server(config, "chief", 0):
                allowed_secs = LOST_SECS
            seen = now
        elif seen is not None and now - seen > allowed_secs:
            break
        elif seen is None and now - began > start_secs:
            sys.exit(f"hookbridge: no {chief} came within {start_secs:g} s")
        time.sleep(POLL_SECS)
    del server
    if allowed_secs != LOST_SECS:
        sys.exit(f"hookbridge: the {chief} ended before it began the job")
    sys.exit(0)
