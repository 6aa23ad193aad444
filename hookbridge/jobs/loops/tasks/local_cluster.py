"""A cluster of real processes on this machine, for trial and tests."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import NamedTuple

from hookbridge import errors
from hookbridge.ground.arguments import count, instance, seconds, shown, writable
from hookbridge.ground.groups import grouped
from hookbridge.ground.processes.tf_config import ClusterConfig
from hookbridge.jobs.loops.tasks.guard import SIGNALS, Guard
from hookbridge.jobs.loops.tasks.local_task import GROUP_STOP, LocalTask
from hookbridge.jobs.loops.tasks.output import Outputs
from hookbridge.jobs.loops.tasks.ports import free_ports, held_ports
from hookbridge.jobs.loops.tasks.task_checks import flags_of

POLL_SECS = 0.05
# How long the output of ended tasks may take: a process that has left its group may
# hold it open.
DRAIN_SECS = 1.0
# How long parameter servers may take to see that all others are done. Those that serve
# for ever are ended then.
SERVING_SECS = 1.0
# Far above what one machine can run; `--num_workers=99999999` is a slip.
MOST_TASKS = 1000


@dataclass(frozen=True)
class LocalCluster:
    """How many tasks of each kind there are; each task is one process.

    Attributes:
      num_workers: the number of workers, without the chief.
      num_ps: the number of parameter servers.
      chief: whether there is a separate chief; without one, worker 0 is the chief.
      evaluator: whether there is an evaluator.
      grace_secs: how long a task has to end after SIGTERM.
      tf1_flags: whether tasks get their place in the cluster by the flags of TF1
        programs, at the end of their command line, instead of by `TF_CONFIG`.
      group_stop: whether the tasks of a program of `hookbridge run` end together; else
        they end as in TensorFlow.
      log_dir: a folder that gets the whole output of each task, as `chief_0.log`, also
        what is not shown: what TensorFlow says at its start. Empty for none.

    Raises:
      errors.InvalidArgumentError: a number is not a number or out of range, or a flag
        is not a bool.
    """

    num_workers: int = 2
    num_ps: int = 1
    chief: bool = True
    evaluator: bool = False
    grace_secs: float = 10.0
    tf1_flags: bool = False
    group_stop: bool = True
    log_dir: str = ""

    def __post_init__(self) -> None:
        """Check the arguments."""
        for name in ("num_workers", "num_ps"):
            value = getattr(self, name)
            if count(name, value, least=0) > MOST_TASKS:
                raise errors.InvalidArgumentError(
                    f"Received `{name}={shown(value)}`; expected an integer from 0 to "
                    f"{MOST_TASKS}."
                )
        for name in ("chief", "evaluator", "tf1_flags", "group_stop"):
            instance(name, getattr(self, name), bool, "a bool")
        seconds("grace_secs", self.grace_secs)
        instance(
            "log_dir", self.log_dir, (str, os.PathLike), "a folder, or an empty string"
        )

    def sizes(self) -> dict[str, int]:
        """Return the number of tasks of each job."""
        return {
            "chief": int(self.chief),
            "worker": int(self.num_workers),
            "ps": int(self.num_ps),
            "evaluator": int(self.evaluator),
        }

    def configs(self, ports: Sequence[int] | None = None) -> list[ClusterConfig]:
        """Return the configuration of each task.

        Args:
          ports: a port of this machine for each task; by default ports that are free.
        """
        tasks = [(job, i) for job, size in self.sizes().items() for i in range(size)]
        ports = free_ports(len(tasks)) if ports is None else ports
        addresses = grouped(
            (job, f"localhost:{port}")
            for (job, _), port in zip(tasks, ports, strict=True)
            if job != "evaluator"
        )
        cluster = {job: tuple(of_job) for job, of_job in addresses.items()}
        return [ClusterConfig(cluster, job, index) for job, index in tasks]

    def _start(
        self,
        config: ClusterConfig,
        command: Sequence[str],
        outputs: Outputs,
        guard: Guard,
    ) -> LocalTask:
        """Start a task, which gets its place as flags or as `TF_CONFIG`."""
        environment = dict(outputs.environment)
        if self.group_stop:
            environment[GROUP_STOP] = "1"
        if self.tf1_flags:
            command = [*command, *flags_of(config)]
        else:
            environment["TF_CONFIG"] = config.to_json()
        task = LocalTask(config.task_type, command, environment, guard)
        name = f"{config.task_type} {config.task_index}"
        outputs.follow(name, (task.process.stdout, task.process.stderr))
        return task

    def run(self, command: Sequence[str]) -> int:
        """Run `command` once for each task, which gets its place, until all end.

        Each line of a task's output begins with the task's name; lines that cannot be
        written are dropped, and tasks go on. On a terminal, a line that a task rewrites
        stands below the others. What TensorFlow says at its start is not shown, unless
        the variable `TF_CPP_MIN_LOG_LEVEL` is set. Called in the main thread, it passes
        on each SIGINT and SIGTERM, and SIGHUP and SIGQUIT as SIGTERM, but none that
        this process ignores. When a task fails, the others are ended. Parameter servers
        do not end by themselves: they are ended when every other task is done. Tasks
        and the processes in their process groups end with this process, also when it is
        killed.

        Args:
          command: program and arguments.

        Returns:
          0 if every task ended well, else the exit code of the first that failed;
          128 + n if signal n ended it.

        Raises:
          errors.InvalidArgumentError: there is no such program.
        """
        words = [] if isinstance(command, str) else list(command)
        if not words or not isinstance(words[0], str) or not shutil.which(words[0]):
            raise errors.InvalidArgumentError(
                f"Received the command {shown(command)}, whose program cannot be "
                "found or run; expected a program and its arguments, for example "
                "`python train.py`."
            )
        tasks: list[LocalTask] = []
        guard = Guard(self.grace_secs)
        outputs = Outputs(self.log_dir and writable(self.log_dir, name="log_dir"))
        with (
            held_ports(sum(self.sizes().values())) as ports,
            _forwarded_signals(tasks) as received,
        ):
            try:
                # A task is in the list at once, so that a failure here ends it too.
                for config in self.configs(ports):
                    if not received:
                        tasks.append(self._start(config, words, outputs, guard))
                        _pass_on_to_last(tasks, received)
                return _wait(tasks, outputs, received, guard)
            finally:
                _end(tasks, outputs, received, self.grace_secs)
                guard.close()
                outputs.close()


class _Signal(NamedTuple):
    """A signal that this process has received.

    Attributes:
      number: which one.
      passed_on: which one the tasks get.
      num_tasks: how many tasks have got it: those that had been started.
    """

    number: int
    passed_on: int
    num_tasks: int


def _pass_on_to_last(tasks: list[LocalTask], received: list[_Signal]) -> None:
    """Send the newest task the signals that came while it was being started."""
    for entry in received:
        if entry.num_tasks < len(tasks):
            tasks[-1].send(entry.passed_on)


def _wait(
    tasks: list[LocalTask], outputs: Outputs, received: list[_Signal], guard: Guard
) -> int:
    """Return the job's exit code; once nothing trains, servers get some seconds."""
    trained: float | None = None
    while True:
        for task in tasks:
            if task.look_whether_empty():
                guard.forget(task.process.pid)
        if received:
            return 128 + received[0].number
        if (code := _code_of_job(tasks)) is not None:
            return code
        if all(task.serves or task.exit_code is not None for task in tasks):
            trained = trained or time.monotonic()
            if time.monotonic() - trained > SERVING_SECS:
                return 0
        outputs.wait(POLL_SECS)


def _code_of_job(tasks: list[LocalTask]) -> int | None:
    """Return the job's exit code: the first that is not 0, or None while tasks run."""
    codes = [task.exit_code for task in tasks]
    if failed := next(filter(None, codes), None):
        return failed
    return 0 if None not in codes else None


def _end(
    tasks: list[LocalTask], outputs: Outputs, received: list[_Signal], grace_secs: float
) -> None:
    """End tasks that still run: with SIGTERM first, then with SIGKILL."""
    if not received:  # else they have got a signal, and need their time to save
        for task in tasks:
            task.send(signal.SIGTERM)
    deadline = time.monotonic() + grace_secs
    while time.monotonic() < deadline and any(t.exit_code is None for t in tasks):
        outputs.wait(POLL_SECS)
    for task in tasks:
        task.send(signal.SIGKILL)  # also to processes that an ended task left behind
        task.process.wait()
    outputs.drain(DRAIN_SECS)


@contextlib.contextmanager
def _forwarded_signals(tasks: list[LocalTask]) -> Iterator[list[_Signal]]:
    """Pass signals on to the tasks; yield a list of the signals received.

    A closed terminal and Ctrl-\\ become SIGTERM, at which tasks save. A signal that
    this process ignores, such as SIGHUP under `nohup`, stays ignored.
    """
    received: list[_Signal] = []

    def forward(number: int, frame: FrameType | None) -> None:
        passed_on = number if number == signal.SIGINT else signal.SIGTERM
        received.append(_Signal(number, passed_on, len(tasks)))
        for task in tasks:
            task.send(passed_on)

    if threading.current_thread() is not threading.main_thread():
        yield received  # only the main thread can take signals
        return
    before = {
        number: signal.signal(number, forward)
        for number in SIGNALS
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
