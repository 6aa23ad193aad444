"""The ports of a cluster's tasks: free ones, and whether somebody listens there."""

from __future__ import annotations

import contextlib
import math
import socket
import threading
import time
from collections.abc import Iterable, Iterator

from hookbridge import errors
from hookbridge.ground.processes.tf_config import ClusterConfig

PROBE_SECS = 1.0

Task = tuple[str, int]  # job and index


def named(config: ClusterConfig, tasks: Iterable[Task]) -> str:
    """Return tasks with their addresses, for messages.

    Args:
      config: the cluster that has them.
      tasks: `(job, index)` of each.
    """
    return ", ".join(f"`{job}` {i} ({config.cluster[job][i]})" for job, i in tasks)


def lasting(secs: float) -> str:
    """Return ` for N s` for a message, or an empty string for a time of 0."""
    return f" for {secs:g} s" if secs else ""


def address(config: ClusterConfig, job: str, index: int) -> tuple[str, int]:
    """Return the host and the port of a task."""
    host, _, port = config.cluster[job][index].rpartition(":")
    return host.strip("[]"), int(port)


def check_own_port(config: ClusterConfig) -> None:
    """Raise if something else listens on this task's port.

    TensorFlow's server finds out too late and does not name the port.
    """
    host, port = address(config, config.task_type, config.task_index)
    with socket.socket() as probe:
        # A server that has just ended leaves its port in a waiting state; the port can
        # be used again.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as e:
            raise errors.ClusterError(
                f"Port {port} of `{config.task_type}` {config.task_index} "
                f"({host}:{port} in TF_CONFIG['cluster']) cannot be used: "
                f"{(e.strerror or str(e)).lower()}; expected a port that nobody "
                "listens on. End the process that has it, or change TF_CONFIG in "
                "every task."
            ) from e


def is_listening(config: ClusterConfig, job: str, index: int) -> bool:
    """Return whether a task's server accepts connections: its process runs.

    Args:
      config: the cluster that has the task.
      job: the job of the task, such as "ps".
      index: its number in the job.
    """
    with contextlib.suppress(OSError):
        socket.create_connection(address(config, job, index), PROBE_SECS).close()
        return True
    return False


@contextlib.contextmanager
def listening(config: ClusterConfig) -> Iterator[None]:
    """Let this task's port tell others that its process lives, in a context."""
    port = address(config, config.task_type, config.task_index)[1]

    def accept() -> None:
        with contextlib.suppress(OSError):  # until the listener is shut down
            while True:
                listener.accept()[0].close()

    with socket.create_server(("", port)) as listener:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


class Liveness:
    """Follows whether tasks are alive."""

    def __init__(self, config: ClusterConfig, tasks: Iterable[Task]) -> None:
        self._config = config
        # The time since which each task is missed; None while it is alive.
        self._missed: dict[Task, float | None] = dict.fromkeys(tasks, time.monotonic())
        self._arrived: set[Task] = set()

    @property
    def arrivals(self) -> int:
        """How many of the tasks have ever been alive."""
        return len(self._arrived)

    @property
    def complete(self) -> bool:
        """Return whether all tasks have been alive at some time."""
        return len(self._arrived) == len(self._missed)

    def look(self) -> None:
        """Look once whether each task is alive."""
        for task, missed in self._missed.items():
            if is_listening(self._config, *task):
                self._arrived.add(task)
                self._missed[task] = None
            elif missed is None:
                self._missed[task] = time.monotonic()

    def away(self, secs: float, *, unseen_secs: float = math.inf) -> list[Task]:
        """Return the tasks away for `secs`, or never alive for `unseen_secs`."""
        now = time.monotonic()
        return [
            task
            for task, missed in self._missed.items()
            if missed is not None
            and now - missed >= (secs if task in self._arrived else unseen_secs)
        ]


@contextlib.contextmanager
def held_ports(count: int) -> Iterator[list[int]]:
    """Hold free ports of localhost, which nobody else gets in this block.

    A server that is started on one of them by its number can listen there: servers set
    `SO_REUSEADDR`, as TensorFlow's do, and this process never listens.
    """
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for server in sockets:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("localhost", 0))
        yield [int(server.getsockname()[1]) for server in sockets]


def free_ports(count: int) -> list[int]:
    """Return ports of localhost that are free at the moment."""
    with held_ports(count) as ports:
        return ports
