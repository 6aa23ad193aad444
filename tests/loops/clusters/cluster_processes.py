"""Starts the processes of a session cluster and ends all of them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fork_server import ForkServer
from forked_python import Forked
from idle_clock import idle_secs

from hookbridge.loops.tasks.local_cluster import free_ports

HERE = Path(__file__).resolve().parent
ALL = ("ps 0", "worker 0", "worker 1")
TIMEOUT_IDLE_SECS = 60.0


@dataclass
class Job:
    """A cluster of real processes on this machine.

    Attributes:
      folder: `<task>.log` has the output of a task, `<task>.jsonl` its events.
      script: the file that each process runs.
      tasks: `"<type> <index>"` of each process.
      arguments: arguments of the script, as `name=value`.
      own: further arguments of single tasks.
      server: starts the tasks.
      alone: whether there is no cluster.
      processes: the last process of each task.
      ended: when a task's process ended, by the clock and by `idle_secs`.
      ports: the ports of each task type.
    """

    folder: Path
    script: str
    tasks: Sequence[str]
    arguments: Sequence[str]
    own: Mapping[str, Sequence[str]]
    server: ForkServer
    alone: bool = False
    processes: dict[str, Forked] = field(default_factory=dict)
    ended: dict[str, tuple[float, float]] = field(default_factory=dict)
    ports: dict[str, list[int]] = field(default_factory=dict)

    def start(self, task: str) -> None:
        """Starts a task, or starts it again."""
        kind, _, index = task.partition(" ")
        cluster = {
            job: [f"127.0.0.1:{port}" for port in ports]
            for job, ports in self.ports.items()
        }
        config = {"cluster": cluster, "task": {"type": kind, "index": int(index)}}
        environment = {
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "CUDA_VISIBLE_DEVICES": "-1",
            "TF_CONFIG": "" if self.alone else json.dumps(config),
        }
        arguments = [*self.arguments, *self.own.get(task, ())]
        name = task.replace(" ", "_")
        self.ended.pop(task, None)
        path = self.folder / f"{name}.log"
        command = [
            str(HERE / self.script),
            str(self.folder / f"{name}.jsonl"),
            *arguments,
        ]
        self.processes[task] = self.server.start(command, environment, path)

    def poll(self) -> None:
        """Notes which processes have ended."""
        for task, process in self.processes.items():
            if process.poll() is not None:
                self.ended.setdefault(task, (time.monotonic(), idle_secs()))

    def wait(self, tasks: Sequence[str] | None = None) -> dict[str, int | None]:
        """Waits for tasks; returns all exit codes, None for tasks that still run."""
        began = idle_secs()
        waited = self.processes if tasks is None else tasks
        while idle_secs() - began < TIMEOUT_IDLE_SECS:
            self.poll()
            if all(task in self.ended for task in waited):
                break
            time.sleep(0.02)
        return {task: process.poll() for task, process in self.processes.items()}

    def wait_for(self, task: str, event: str, times: int = 1) -> dict[str, Any]:
        """Waits until a task has noted an event `times` times; returns the last one."""
        began = idle_secs()
        while idle_secs() - began < TIMEOUT_IDLE_SECS:
            noted = self.events(task, event)
            if len(noted) >= times:
                return noted[times - 1]
            self.poll()
            assert task not in self.ended, self.log(task)
            time.sleep(0.02)
        raise AssertionError(f"{task} never noted {event}: {self.log(task)}")

    def events(self, task: str, event: str | None = None) -> list[dict[str, Any]]:
        """The events that a task has noted, in order."""
        path = self.folder / f"{task.replace(' ', '_')}.jsonl"
        if not path.exists():
            return []
        lines = path.read_text().split("\n")[:-1]  # the last one may be incomplete
        noted = [json.loads(line) for line in lines]
        return [n for n in noted if event is None or n["event"] == event]

    def idle_secs_to_end(self) -> float:
        """Idle seconds from the last step of all to the end of the last process."""
        steps: list[float] = [
            n["idle"] for task in self.tasks for n in self.events(task, "step")
        ]
        return max(idle for _, idle in self.ended.values()) - max(steps)

    def send(self, task: str, number: int) -> None:
        """Sends a signal to a task and its children."""
        os.killpg(self.processes[task].pid, number)

    def log(self, task: str) -> str:
        """The end of the output of a task."""
        path = self.folder / f"{task.replace(' ', '_')}.log"
        return path.read_text(errors="replace")[-4000:]

    def logs(self) -> str:
        """The ends of the outputs of all tasks."""
        return "\n".join(f"== {task}\n{self.log(task)}" for task in self.processes)


@contextlib.contextmanager
def job(
    folder: Path,
    script: str,
    *arguments: str,
    server: ForkServer,
    tasks: Sequence[str] = ALL,
    own: Mapping[str, Sequence[str]] | None = None,
    start: Sequence[str] | None = None,
    alone: bool = False,
) -> Iterator[Job]:
    """A started job; no process outlives the block.

    Args:
      folder: gets logs and events.
      script: the name of a file beside this one.
      *arguments: arguments of the script.
      server: starts the tasks.
      tasks: the tasks of the cluster.
      own: further arguments of single tasks.
      start: the tasks to start now; None starts all.
      alone: the task has no cluster.
    """
    folder.mkdir(parents=True, exist_ok=True)
    it = Job(folder, script, tasks, arguments, own or {}, server, alone)
    ports = iter(free_ports(len(tasks)))
    for task in tasks:
        kind = task.partition(" ")[0]
        if kind != "evaluator":
            it.ports.setdefault(kind, []).append(next(ports))
    try:
        for task in tasks if start is None else start:
            it.start(task)
        yield it
    finally:
        for process in it.processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
