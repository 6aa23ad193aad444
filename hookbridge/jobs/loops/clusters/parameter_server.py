"""One call that starts each task of a parameter-server cluster in its role."""

from __future__ import annotations

import atexit
import contextlib
import re
import threading
import time
from typing import Any

import tensorflow as tf

from hookbridge import errors
from hookbridge.adapters.guests.kinds import flatten
from hookbridge.adapters.parameter_server import ps_refusals
from hookbridge.adapters.parameter_server.exit import PREEMPTED, end_with_threads
from hookbridge.ground.arguments import seconds
from hookbridge.ground.processes import exit_codes
from hookbridge.ground.processes.signals import on_sigterm
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.jobs.loops.clusters.serve import (
    follow_servers,
    serve_strategy,
    tell_servers,
)
from hookbridge.jobs.loops.tasks import ports
from hookbridge.jobs.loops.tasks.server import PROTOCOL, answers
from hookbridge.jobs.loops.tasks.task_checks import tasks_of

POLL_SECS = 0.5
START_SECS = 600.0
WORKERS_LOST_SECS = 600.0
FOLLOW_SECS = 10.0  # between two looks at the workers, at most
# What the coordinator logs about each step that fails because of a lost server, and
# about others that fail with it. It is hidden: the error of `fit` names the server.
_LOST_SERVER = re.compile(
    r"(?s)(Remote function on worker|error when processing closure).*"
    r"(remote target /job:ps/|This derived error is ignored)"
)


def parameter_server_strategy(
    config: ClusterConfig | None = None,
    variable_partitioner: object = None,
    *,
    guests: object = (),
    start_secs: float = START_SECS,
    lost_secs: float = WORKERS_LOST_SECS,
) -> Any:
    """Start this task in its role, and make the strategy on the chief.

        strategy = hb.loops.parameter_server_strategy()  # only the chief goes on
        with strategy.scope():
            model = ...
            model.compile(...)
        model.fit(..., callbacks=hb.as_callbacks([...]))

    A `worker` or `ps` serves until the chief's process has ended in any way, and then
    ends its own process. The chief waits until every server listens. There the first
    SIGTERM, or the first one to a `ps`, stops the running `fit` with guests of
    `as_callbacks` after the current step: every `end` and `on_train_end` still runs, so
    `CheckpointSaverHook` saves. The processes of the job then end with 143. The second
    has its usual effect.

    Args:
      config: the cluster; None reads `TF_CONFIG`. Without `TF_CONFIG` this process
        trains alone, under the current strategy.
      variable_partitioner: see `tf.distribute.ParameterServerStrategy`, which calls
        it once for each variable, on the thread that makes the variable.
      guests: the hooks and callbacks of the `fit`, if they are known already. Those
        that cannot run with remote workers are then refused before any server starts.
      start_secs: how long tasks wait for one another at the start.
      lost_secs: how long all workers may be away at once. After that, a `fit` with
        guests of `as_callbacks` that waits for a step ends with a `ClusterError`;
        TensorFlow alone waits an hour.

    Returns:
      The `tf.distribute.ParameterServerStrategy`, on the chief. Does not return on
      the other tasks. `tf.distribute.get_strategy()` if there is no cluster.

    Raises:
      errors.InvalidArgumentError: the cluster is malformed, has no chief, worker or
        parameter server, or this task has another role; the message names the key.
        Or a time is not a finite number of at least 0.
      errors.RefusedError: one of `guests` cannot run with remote workers.
      errors.ClusterError: this task's port is in use, or others did not come.
      SystemExit: on a worker or parameter server when the chief is gone; with the
        chief's exit code, or 138 if it was killed or never came.
    """
    config = ClusterConfig.of(config)
    start_secs = seconds("start_secs", start_secs)
    lost_secs = seconds("lost_secs", lost_secs)
    guests = flatten(guests)
    if not config.cluster:
        return tf.distribute.get_strategy()
    _check(config)
    for guest in guests:
        # `as_callbacks` may have wrapped it.
        ps_refusals.check_hook(getattr(guest, "hook", guest))
    exit_codes.use_for_errors()
    ports.check_own_port(config)
    if config.task_type != "chief":
        serve_strategy(config, start_secs=start_secs)
    with ports.listening(config):
        tf.config.list_logical_devices()  # then its server listens at once
        _wait_for_servers(config, start_secs)
        tf.get_logger().addFilter(lambda r: not _LOST_SERVER.search(r.getMessage()))
        _follow_workers(config, lost_secs)
    stack = contextlib.ExitStack()
    stack.enter_context(on_sigterm(PREEMPTED.set))
    atexit.register(stack.close)
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(dict(config.cluster)),
        task_type="chief",
        task_id=0,
        rpc_layer=PROTOCOL,
    )
    strategy = tf.distribute.ParameterServerStrategy(
        resolver, variable_partitioner=variable_partitioner
    )
    end_with_threads(strategy)
    tell_servers(config)
    follow_servers(config, PREEMPTED.set)
    return strategy


def _check(config: ClusterConfig) -> None:
    """Refuse a cluster without what the strategy needs, and a task of another kind."""
    for job in ("chief", "worker", "ps"):
        if not config.cluster.get(job):
            raise errors.InvalidArgumentError(
                f"TF_CONFIG['cluster'] has no {job!r}; expected one `chief`, at least "
                "one `worker` and at least one `ps`, as `ParameterServerStrategy` "
                f"needs; received the jobs {sorted(config.cluster)}."
            )
    if config.task_type not in ("chief", "worker", "ps"):
        raise errors.InvalidArgumentError(
            f"TF_CONFIG['task']['type'] is {config.task_type!r}; expected `chief`, "
            "`worker` or `ps`. Other tasks do not take part in the strategy and must "
            "not call this."
        )


def _wait_for_servers(config: ClusterConfig, start_secs: float) -> None:
    """Return when the TensorFlow server of every task answers."""
    missing = tasks_of(config, "worker", "ps")
    deadline = time.monotonic() + start_secs
    while missing := [
        # Another program may listen at a task's address.
        task
        for task in missing
        if not (ports.is_listening(config, *task) and answers(config, *task))
    ]:
        if time.monotonic() > deadline:
            raise errors.TaskLostError(
                f"Tasks of TF_CONFIG['cluster'] did not come within {start_secs:g} s: "
                f"{ports.named(config, missing)}; expected the TensorFlow server of "
                "every worker and parameter server. Start them with the same "
                "TF_CONFIG['cluster'], and end other programs that have their ports."
            )
        time.sleep(POLL_SECS / 5)


def _follow_workers(config: ClusterConfig, lost_secs: float) -> None:
    """End the waits of this process when all workers have been gone for too long."""
    workers = tasks_of(config, "worker")
    liveness = ports.Liveness(config, workers)
    liveness.look()

    is_over = threading.Event()
    error = errors.TaskLostError(
        f"All workers are gone{ports.lasting(lost_secs)}: "
        f"{ports.named(config, workers)}; expected at least one that computes steps. "
        "See what they printed, and start the job again: it goes on from its last "
        "checkpoint."
    )

    def follow() -> None:
        while not is_over.wait(min(max(lost_secs / 10, POLL_SECS), FOLLOW_SECS)):
            liveness.look()
            is_lost = len(liveness.away(lost_secs)) == len(workers)
            PREEMPTED.lost = error if is_lost else None

    def end() -> None:
        is_over.set()
        thread.join(FOLLOW_SECS)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    atexit.register(end)
