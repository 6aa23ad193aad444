"""A cluster of real processes on this machine, for trial and tests."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import IO, Any

from hookbridge import errors
from hookbridge.cluster import ClusterConfig

POLL_SECS = 0.05


@dataclass(frozen=True)
class LocalCluster:
    """How many tasks of each kind; each is one process.

    Attributes:
      num_workers: workers beside the chief.
      num_ps: parameter servers.
      chief: whether there is a chief of its own; without one, worker 0 is it.
      evaluator: whether there is an evaluator.
      grace_secs: how long a task may take to end after it was told to.
    """

    num_workers: int = 2
    num_ps: int = 1
    chief: bool = True
    evaluator: bool = False
    grace_secs: float = 10.0

    def configs(self) -> list[ClusterConfig]:
        """The configuration of each task, with free ports of this machine."""
        sizes = {
            "chief": int(self.chief),
            "worker": self.num_workers,
            "ps": self.num_ps,
        }
        ports = iter(free_ports(sum(sizes.values())))
        cluster = {
            job: tuple(f"localhost:{next(ports)}" for _ in range(size))
            for job, size in sizes.items()
            if size
        }
        tasks = [(job, i) for job, hosts in cluster.items() for i in range(len(hosts))]
        if self.evaluator:
            tasks.append(("evaluator", 0))
        return [ClusterConfig(cluster, job, index) for job, index in tasks]

    def run(self, command: Sequence[str]) -> int:
        """Runs `command` once for each task, with `TF_CONFIG` set, to the end.

        The lines of each task's output get its name in front. SIGINT and SIGTERM
        are passed on. When a task fails, the others are ended. Parameter servers
        do not end by themselves: they are ended when every other task is done. No
        process is left, whatever happens.

        Args:
          command: program and arguments.

        Returns:
          0 if every task ended well, else the exit code of the first that did not;
          128 + n for one that signal n ended.

        Raises:
          errors.InvalidArgumentError: there is no such program.
        """
        if not command or shutil.which(command[0]) is None:
            raise errors.InvalidArgumentError(
                f"Received the command {' '.join(command)!r}, whose program cannot be "
                "found or run; expected a program and its arguments, for example "
                "`python train.py`."
            )
        tasks: list[_Task] = []
        try:
            with _forwarded_signals(tasks) as received:
                # One by one into the list, so that a failure here ends the started.
                for config in self.configs():
                    tasks.append(_Task(config, command))
                return _wait(tasks, received, self.grace_secs)
        finally:
            _end(tasks, self.grace_secs)


def free_ports(count: int) -> list[int]:
    """Ports of localhost that nobody uses at the moment, all different."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("localhost", 0))
        return [int(each.getsockname()[1]) for each in sockets]


class _Task:
    """One process of the cluster, and the threads that pass on its output."""

    _lock = threading.Lock()  # one line at a time, whichever task it is from

    def __init__(self, config: ClusterConfig, command: Sequence[str]) -> None:
        self.serves = config.task_type == "ps"
        self.name = f"{config.task_type} {config.task_index}"
        # In a group of its own, so that what the task starts is ended with it, and
        # Ctrl-C reaches it once, through us.
        self.process = subprocess.Popen(
            command,
            env=_environment(config),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        pairs: list[tuple[Any, IO[str]]] = [
            (self.process.stdout, sys.stdout),
            (self.process.stderr, sys.stderr),
        ]
        self._threads = [
            threading.Thread(target=self._copy, args=pair, daemon=True)
            for pair in pairs
        ]
        for thread in self._threads:
            thread.start()

    def _copy(self, source: IO[str], target: IO[str]) -> None:
        for line in source:
            with self._lock:
                target.write(f"[{self.name}] {line.rstrip()}\n")
                target.flush()

    def send(self, number: int) -> None:
        """Sends a signal to the task and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    @property
    def exit_code(self) -> int | None:
        """The exit code as a shell gives it; None while the task runs."""
        code = self.process.poll()
        return code if code is None or code >= 0 else 128 - code

    def drain(self) -> None:
        """Waits until everything that the task wrote is passed on."""
        for thread in self._threads:
            thread.join(timeout=1.0)


def _environment(config: ClusterConfig) -> Mapping[str, str]:
    return {**os.environ, "TF_CONFIG": config.to_json(), "PYTHONUNBUFFERED": "1"}


def _wait(tasks: list[_Task], received: list[int], grace_secs: float) -> int:
    deadline: float | None = None
    while True:
        codes = [task.exit_code for task in tasks]
        failed = next((code for code in codes if code), None)
        if received:
            # The tasks were told; give them time to save before the rest is ended.
            deadline = deadline or time.monotonic() + grace_secs
            if None not in codes or time.monotonic() > deadline:
                return 128 + received[0]
        elif failed is not None:
            return failed
        elif all(
            code is not None or task.serves
            for task, code in zip(tasks, codes, strict=True)
        ):
            return 0
        time.sleep(POLL_SECS)


def _end(tasks: list[_Task], grace_secs: float) -> None:
    """Ends what still runs: asks first, then insists."""
    for task in tasks:
        if task.exit_code is None:
            task.send(signal.SIGTERM)
    deadline = time.monotonic() + grace_secs
    for task in tasks:
        with contextlib.suppress(subprocess.TimeoutExpired):
            task.process.wait(max(0.0, deadline - time.monotonic()))
    for task in tasks:
        task.send(signal.SIGKILL)  # also what an ended task left behind
        task.process.wait()
        task.drain()


@contextlib.contextmanager
def _forwarded_signals(tasks: list[_Task]) -> Iterator[list[int]]:
    """Passes SIGINT and SIGTERM on to the tasks; yields those that came."""
    received: list[int] = []

    def forward(number: int, frame: FrameType | None) -> None:
        received.append(number)
        for task in tasks:
            if task.exit_code is None:
                task.send(number)

    if threading.current_thread() is not threading.main_thread():
        yield received  # only the main thread can take signals
        return
    before = {n: signal.signal(n, forward) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
