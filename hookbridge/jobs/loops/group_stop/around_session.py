"""Contexts around a session: when the session ends, the whole job ends."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from absl import logging

from hookbridge import errors
from hookbridge.ground.patching import Patches
from hookbridge.ground.processes import exit_codes
from hookbridge.ground.step_errors import END_OF_DATA, LOST_TASK
from hookbridge.jobs.loops.group_stop.member import GroupStop, GroupStopped
from hookbridge.jobs.loops.group_stop.stop_requests import reason_of


@contextlib.contextmanager
def stop_of_all(group: GroupStop, target: str = "") -> Iterator[None]:
    """Stop the other tasks when an exception leaves the block; see `stop_by`.

    Args:
      group: this process's part of the job.
      target: the address of its own server, for a process that has not joined the job;
        empty if it has none.
    """
    try:
        yield
    except GroupStopped:
        raise
    except BaseException as e:
        if group.watch.is_interrupted:
            raise GroupStopped(group.reason) from e
        group.watch.step_is_over()
        if isinstance(e, LOST_TASK) and not group.stopped:
            # Nobody stopped the job. If a server is gone, show that error instead.
            group.failed = True
            try:
                group.wait_for_servers()
            except errors.ClusterError as server_error:
                group.fail(server_error)
                raise
        if isinstance(e, END_OF_DATA):
            group.request(reason_of(e))
        else:
            stop_by(group, e, target)
        raise


def stop_by(group: GroupStop, error: BaseException, target: str) -> None:
    """Stop every process of the job because of an error of this one.

    A process that has not joined the job yet does so first, through its own server.

    Args:
      group: this process's part of the job.
      error: the error, from which reason and exit code follow.
      target: the address of its own server; empty if it has none.
    """
    with contextlib.suppress(Exception):  # the error that counts is `error`
        if target and not group.stopped and group.servers_listen():
            group.connect(target)
    group.request(reason_of(error), exit_codes.of_error(error))


def end_with(code: int, reason: str | None) -> None:
    """End this process unless the code is 0, and say why on stderr.

    Args:
      code: the exit code.
      reason: why the job ends.

    Raises:
      SystemExit: the code is not 0.
    """
    if code:
        sys.stderr.write(f"hookbridge: exit code {code}: {reason}\n")
        raise SystemExit(code)


@contextlib.contextmanager
def stop_is_no_error(group: GroupStop) -> Iterator[None]:
    """End quietly after a stop; raise the error about a lost task."""
    try:
        yield
    except GroupStopped:
        logging.info("hookbridge: the last step was ended: %s", group.reason)
    except Exception as e:
        if group.error is not None and e is not group.error:
            raise group.error from e
        # Servers do not wait for a task whose last step takes very long, so its calls
        # may fail after the stop.
        late = isinstance(e, LOST_TASK) and not group.failed
        if not (late and group.stopped):
            raise
        logging.warning(
            "hookbridge: the job stopped (%s). A call to its servers failed after that "
            "(%s); the failure is ignored.",
            group.reason,
            type(e).__name__,
        )
    if group.error is not None:
        raise group.error


def gated(scaffold: Any, group: GroupStop) -> Any:
    """Return a scaffold that waits for the servers before each session.

    Args:
      scaffold: the user's `Scaffold`, which is changed; None makes one.
      group: this process's part of the job.
    """
    scaffold = scaffold or tf.compat.v1.train.Scaffold()
    finalize = scaffold.finalize

    def wait() -> Any:
        finalize()
        group.check()
        group.wait_for_servers()
        group.wait_until_ready()
        return scaffold

    Patches(scaffold, {"finalize": wait}).install()
    return scaffold


class FinishedSession:
    """The session of a task that comes when the job is over."""

    def should_stop(self) -> bool:
        return True

    def run(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Run called even after should_stop requested.")
