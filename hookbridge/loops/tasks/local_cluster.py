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
from typing import IO

from hookbridge import errors
from hookbridge.arguments import positive, seconds
from hookbridge.cluster import ClusterConfig
from hookbridge.loops.tasks import guard as guard_lib
from hookbridge.loops.tasks.guard import Guard

POLL_SECS = 0.05


# Far above what one machine can run; `--num_workers=99999999` is a slip.
MOST_TASKS = 1000


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

    def __post_init__(self) -> None:
        """Checks what was given.

        Raises:
          errors.InvalidArgumentError: a number is none, or out of range.
        """
        for name in ("num_workers", "num_ps"):
            value = getattr(self, name)
            if value is None or (positive(name, value, least=0) or 0) > MOST_TASKS:
                raise errors.InvalidArgumentError(
                    f"Received `{name}={value}`; expected an integer from 0 to "
                    f"{MOST_TASKS}."
                )
        for name in ("chief", "evaluator"):
            if not isinstance(getattr(self, name), bool):
                raise errors.InvalidArgumentError(
                    f"Received `{name}={getattr(self, name)!r}`; expected a bool."
                )
        seconds("grace_secs", self.grace_secs)

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

        The lines of each task's output get its name in front; lines that cannot be
        written are dropped, and tasks go on. SIGINT and SIGTERM are passed on, SIGHUP
        and SIGQUIT as SIGTERM, each time that they come. When a task fails, the others
        are ended. Parameter servers do not end by themselves: they are ended when every
        other task is done. Tasks and what they started (in their process groups) end
        with this process, also when it is killed.

        Args:
          command: program and arguments.

        Returns:
          0 if every task ended well, else the exit code of the first that did not;
          128 + n for one that signal n ended.

        Raises:
          errors.InvalidArgumentError: there is no such program.
        """
        words = [] if isinstance(command, str) else list(command)
        if not words or not isinstance(words[0], str) or not shutil.which(words[0]):
            raise errors.InvalidArgumentError(
                f"Received the command {command!r}, whose program cannot be "
                "found or run; expected a program and its arguments, for example "
                "`python train.py`."
            )
        tasks: list[_Task] = []
        guard = Guard(self.grace_secs)
        outputs = _Output(sys.stdout), _Output(sys.stderr)
        with _forwarded_signals(tasks) as received:
            try:
                # A task is in the list at once, so that a failure here ends it too.
                for config in self.configs():
                    if not received:
                        tasks.append(_Task(config, command, outputs))
                        guard.watch(tasks[-1].process.pid)
                return _wait(tasks, received, self.grace_secs, guard)
            finally:
                # Those that a signal reached have had their time.
                _end(tasks, 0.0 if received else self.grace_secs)
                guard.close()
                for output in outputs:
                    output.close()


def free_ports(count: int) -> list[int]:
    """Ports of localhost that nobody uses at the moment, all different."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("localhost", 0))
        return [int(each.getsockname()[1]) for each in sockets]


class _Output:
    """Where the lines of all tasks go. What cannot be written is dropped.

    A task must not wait for ever because nobody reads its lines, or the disk is full.

    Args:
      stream: `sys.stdout` or `sys.stderr`.
    """

    _lock = threading.Lock()  # one line at a time, whichever task it is from

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._failed = False

    def write(self, line: str) -> None:
        """Writes a line, in the stream's encoding as far as that goes."""
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        text = line.encode(encoding, "backslashreplace").decode(encoding)
        with self._lock:
            try:
                self._stream.write(f"{text}\n")
                self._stream.flush()
            except (OSError, ValueError) as e:
                self._note(e)

    def close(self) -> None:
        """Lets the interpreter end in peace with what could not be written."""
        try:
            self._stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def _note(self, error: Exception) -> None:
        if not self._failed:
            self._failed = True
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(
                    "hookbridge: output of the tasks cannot be written and is "
                    f"dropped: {error}\n"
                )


class _Task:
    """One process of the cluster, and the threads that pass on its output."""

    def __init__(
        self,
        config: ClusterConfig,
        command: Sequence[str],
        outputs: tuple[_Output, _Output],
    ) -> None:
        self.serves = config.task_type == "ps"
        self.is_empty = False
        name = f"{config.task_type} {config.task_index}"
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
        sources = (self.process.stdout, self.process.stderr)
        self._threads = [
            threading.Thread(target=_copy, args=(source, name, output), daemon=True)
            for source, output in zip(sources, outputs, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def send(self, number: int) -> None:
        """Sends a signal to the task and all that it started."""
        if not self.is_empty:
            guard_lib.send(self.process.pid, number)

    @property
    def exit_code(self) -> int | None:
        """The exit code as a shell gives it; None while the task runs."""
        code = self.process.poll()
        return code if code is None or code >= 0 else 128 - code

    def look_whether_empty(self) -> bool:
        """Whether the task and all that it started have ended since the last look."""
        if self.is_empty or self.exit_code is None:
            return False
        self.is_empty = not guard_lib.has_members(self.process.pid)
        return self.is_empty

    def drain(self) -> None:
        """Waits until everything that the task wrote is passed on."""
        for thread in self._threads:
            thread.join(timeout=1.0)


def _copy(source: IO[str], name: str, output: _Output) -> None:
    for line in source:
        output.write(f"[{name}] {line.rstrip()}")


def _environment(config: ClusterConfig) -> Mapping[str, str]:
    return {**os.environ, "TF_CONFIG": config.to_json(), "PYTHONUNBUFFERED": "1"}


def _wait(
    tasks: list[_Task], received: list[int], grace_secs: float, guard: Guard
) -> int:
    deadline: float | None = None
    while True:
        codes = [task.exit_code for task in tasks]
        for task in tasks:
            if task.look_whether_empty():
                guard.forget(task.process.pid)
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
    if grace_secs:
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
    """Passes signals on to the tasks; yields those that came.

    A closed terminal and Ctrl-\\ become SIGTERM, at which tasks save. A signal that
    this process ignores, as SIGHUP under `nohup`, stays ignored.
    """
    received: list[int] = []

    def forward(number: int, frame: FrameType | None) -> None:
        received.append(number)
        passed_on = number if number == signal.SIGINT else signal.SIGTERM
        for task in tasks:
            if task.exit_code is None:
                task.send(passed_on)

    if threading.current_thread() is not threading.main_thread():
        yield received  # only the main thread can take signals
        return
    before = {
        number: signal.signal(number, forward)
        for number in guard_lib.SIGNALS
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
