"""The hook that stops all processes when one of them stops."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from hookbridge.ground.patching import Patches
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.ground.protocols import Coordinator, RunContext, RunValues, Session
from hookbridge.jobs.loops.group_stop.board import CALL_MS, SYNC_TOKENS, token_ops
from hookbridge.jobs.loops.group_stop.member import GroupStop, GroupStopped
from hookbridge.jobs.loops.tasks.server import limit_close, own_target

v1 = tf.compat.v1

# How long a closing session waits for its threads. One is the chief's thread that waits
# for gradients, which nobody computes any more. TensorFlow's default is 120 s.
GRACE_SECS = 1.0


class GroupHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Passes stops between a session and the other processes of its group.

    Args:
      group: the group of this process.
      joins: whether the hook connects the group, in `begin`.
      leaves: whether this process leaves the group as its session ends.
    """

    def __init__(self, group: GroupStop, *, joins: bool, leaves: bool) -> None:
        self.group: GroupStop = group
        self._config = group.config
        self._joins, self._leaves = joins, leaves
        fail_fast()

    def begin(self) -> None:
        """Join the job and, on a worker, wait for the chief."""
        if self._joins and self._config.task_type != "evaluator":
            self.group.connect(own_target(self._config))
            # If the job has stopped, `after_create_session` will stop the session.
            with contextlib.suppress(GroupStopped):
                self.group.wait_until_ready()
        self._tokens = token_ops(v1.get_default_graph())

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        """Tell the others that the variables exist; shorten the session's end."""
        _limit_grace(coord)
        watch = self.group.watch
        watch.release_by(functools.partial(_run, session, self._tokens))
        if self._config.cluster:
            limit_close(session)
        watch.interrupt_by(None if self._config.is_chief else session.close)
        if self._config.is_chief:
            self.group.ready()
        self._coord = coord
        if self.group.stopped:
            coord.request_stop()

    def before_run(self, run_context: RunContext) -> None:
        """Note that a step begins."""
        self.group.watch.step_begins()
        self.group.requests.watch(run_context)

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Pass a stop on, from this session to the other processes or back."""
        self.group.watch.step_is_over()
        if self._coord.should_stop():
            # A thread of the session failed, for example because a server is lost.
            self._coord.raise_requested_exception()
        if run_context.stop_requested or self._coord.should_stop():
            self.group.request(self.group.requests.reason)
        elif not self.group.stopped:
            return
        if self.group.error is not None:
            raise self.group.error
        run_context.request_stop()

    def end(self, session: Session | None) -> None:
        """Stop the other processes, since this session ends."""
        self.group.watch.step_is_over()
        self.group.request("its session ended")
        if self._leaves:
            self.group.leave()


class GroupStopHook(GroupHook):
    """Stops every process of a cluster as soon as one of them stops.

    It passes on every stop of a session: `request_stop` of a hook, `stop_training` of
    a callback, the last step, the end of the data. Give it to every worker and the
    chief, last in the list; `SessionCluster` and `hb.loops.train_and_evaluate` do so
    by themselves. Without a cluster it does nothing.

    It adds nothing to variables and checkpoints. It is called on the thread of the
    loop. Another thread waits for a stop by other processes, so each run costs only one
    look at a flag.

    Args:
      config: the cluster; None takes `TF_CONFIG`.

    Raises:
      errors.InvalidArgumentError: `TF_CONFIG` is malformed, or `config` is of another
        type.
      errors.ClusterError: in `begin`, a parameter server or the chief is not there in
        time.
    """

    def __init__(self, config: ClusterConfig | None = None) -> None:
        super().__init__(GroupStop(ClusterConfig.of(config)), joins=True, leaves=True)


class StepEndHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Notes the end of a step, and which later hook asks for a stop.

    It must be the first hook: time spent in later hooks is then not counted as part of
    the step.
    """

    def __init__(self, group: GroupStop) -> None:
        self._group = group

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        """Act before the start of the chief's thread that closes the token queue."""
        _keep_tokens(coord, self._group)

    def before_run(self, run_context: RunContext) -> None:
        """Note who asks for a stop in this run."""
        self._group.requests.watch(run_context)

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """Note that the step is over."""
        self._group.watch.step_is_over()


def _run(session: Session, ops: Sequence[Any]) -> None:
    options = v1.RunOptions(timeout_in_ms=CALL_MS)
    # The call fails if the chief has ended: its end closes the queue, which releases
    # all workers.
    with contextlib.suppress(tf.errors.OpError, RuntimeError):
        session.run(ops, options=options)


def fail_fast() -> None:
    """Make TensorFlow's calls to a lost task fail; call this before any such call.

    By default the calls wait until the task is back, perhaps for ever, and nothing can
    end the wait.
    """
    os.environ.setdefault("GRPC_FAIL_FAST", "true")


def _keep_tokens(coord: Coordinator, group: GroupStop) -> None:
    """Keep the token queue open in a recovery, and close it at the end of the job."""
    # A lost session closes the token queue at its end. The next session would find the
    # queue closed, and workers would take that for the end of the data.
    wait_for_stop = coord.wait_for_stop

    def wait(timeout: float | None = None) -> Any:
        stops = wait_for_stop(timeout)
        name = threading.current_thread().name
        if SYNC_TOKENS.decode() in name and name.endswith("close_on_stop"):
            while not group.stopped:
                if coord.joined:
                    raise SystemExit  # ends only this thread
                time.sleep(0.05)
        return stops

    Patches(coord, {"wait_for_stop": wait}).install()


def _limit_grace(coord: Coordinator) -> None:
    """Let `join` wait for a limited time, and ignore errors of threads after it."""
    join = coord.join

    def limited(
        threads: object = None,
        stop_grace_period_secs: float = GRACE_SECS,
        ignore_live_threads: bool = False,
    ) -> Any:
        return join(
            threads,
            stop_grace_period_secs=min(stop_grace_period_secs, GRACE_SECS),
            ignore_live_threads=ignore_live_threads,
        )

    request_stop = coord.request_stop

    def quiet(ex: object = None) -> Any:
        # A closing session cancels waiting calls, and later calls find no session. In
        # the coordinator's threads these errors are not failures.
        if coord.joined and isinstance(ex, (tf.errors.OpError, RuntimeError)):
            return None
        return request_stop(ex)

    Patches(coord, {"join": limited, "request_stop": quiet}).install()
