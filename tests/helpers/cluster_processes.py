"""Starts the processes of a cluster on this machine and ends all of them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fork_server import ForkServer
from forked_python import Forked
from idle_clock import idle_secs

from hookbridge.jobs.loops.tasks.ports import held_ports

TESTS = Path(__file__).resolve().parents[1]
ALL = ("ps 0", "worker 0", "worker 1")
WITH_CHIEF = ("chief 0", *ALL)
TIMEOUT_IDLE_SECS = 120.0


@dataclass
class Job:
    """A cluster of real processes on this machine.

    In `folder`, `<task>.log` has the output of a task and `<task>.jsonl` its events.
    Each task runs `script` with the path of its events, `arguments` and those of `own`.
    `ended` has when a task's process ended, by the clock and by `idle_secs`.
    """

    folder: Path
    script: Path
    tasks: Sequence[str]
    arguments: Sequence[str]
    own: dict[str, Sequence[str]]
    server: ForkServer
    environment: Mapping[str, str]
    alone: bool
    free: Sequence[int]
    processes: dict[str, Forked] = field(default_factory=dict)
    ended: dict[str, tuple[float, float]] = field(default_factory=dict)
    ports: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Gives out the free ports; an evaluator is no part of the cluster."""
        ports = iter(self.free)
        for task in self.tasks:
            kind = task.partition(" ")[0]
            if kind != "evaluator":
                self.ports.setdefault(kind, []).append(next(ports))

    def start(self, *tasks: str) -> None:
        """Starts tasks, or starts them again; all of them if none is named."""
        cluster = {
            job: [f"127.0.0.1:{port}" for port in ports]
            for job, ports in self.ports.items()
        }
        for task in tasks or self.tasks:
            kind, _, index = task.partition(" ")
            place = {"type": kind, "index": int(index or 0)}
            config = json.dumps({"cluster": cluster, "task": place})
            arguments = [*self.arguments, *self.own.get(task, ())]
            self.ended.pop(task, None)
            self.processes[task] = self.server.start(
                [str(self.script), str(self.report(task)), *arguments],
                {"TF_CONFIG": "{}" if self.alone else config, **self.environment},
                self.report(task).with_suffix(".log"),
            )

    def report(self, task: str) -> Path:
        """The file of a task's events."""
        return self.folder / f"{task.replace(' ', '_')}.jsonl"

    def poll(self) -> None:
        """Notes which processes have ended."""
        for task, process in self.processes.items():
            if process.poll() is not None:
                self.ended.setdefault(task, (time.monotonic(), idle_secs()))

    def until(self, done: Callable[[], bool], what: str = "") -> None:
        """Waits until something is so; a time-out names it and has all logs."""
        began = idle_secs()
        while not done():
            assert idle_secs() - began < TIMEOUT_IDLE_SECS, f"{what}\n{self.logs()}"
            time.sleep(0.02)
            self.poll()

    def wait(self, tasks: Sequence[str] | None = None) -> dict[str, int | None]:
        """Waits for tasks; returns all exit codes, None for tasks that still run."""
        waited = self.processes if tasks is None else tasks
        self.until(lambda: all(task in self.ended for task in waited), "still run")
        return {task: process.poll() for task, process in self.processes.items()}

    def wait_for(self, task: str, event: str, times: int = 1) -> dict[str, Any]:
        """Waits until a task has noted an event `times` times; returns the last one."""

        def noted() -> bool:
            ended = task in self.ended  # looked up before its last events are read
            has = len(self.events(task, event)) >= times
            assert has or not ended, f"{task} has no {event}: {self.log(task)}"
            return has

        self.until(noted, f"{task} never noted {event}")
        return self.events(task, event)[times - 1]

    def events(self, task: str, event: str | None = None) -> list[dict[str, Any]]:
        """The events that a task has noted, in order."""
        path = self.report(task)
        if not path.exists():
            return []
        lines = path.read_text().split("\n")[:-1]  # the last one may be incomplete
        noted = [json.loads(line) for line in lines]
        return [n for n in noted if event is None or n["event"] == event]

    def of_chief(self, event: str) -> dict[str, Any]:
        """The only event of that name that the chief has noted."""
        (noted,) = self.events("chief 0", event)
        return noted

    def idle_secs_to_end(self, since: float | None = None) -> float:
        """Idle seconds from the last step of all to the end of the last process."""
        if since is None:
            since = max(n["idle"] for t in self.tasks for n in self.events(t, "step"))
        return max(idle for _, idle in self.ended.values()) - since

    def send(self, task: str, number: int) -> float:
        """Sends a signal to a task and its children; returns `idle_secs`."""
        os.killpg(self.processes[task].pid, number)
        return idle_secs()

    def log(self, task: str) -> str:
        """The end of the output of a task."""
        return self.report(task).with_suffix(".log").read_text(errors="replace")[-4000:]

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
    environment: Mapping[str, str] | None = None,
) -> Iterator[Job]:
    """A started job; no process outlives the block.

    `script` is the name of a file beside the test; `start` has the tasks to start now,
    by default all. With `alone`, the tasks get no cluster.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # Programs of other tests put folders of their own into the path, files and all.
    places = (Path(p) for p in sys.path if Path(p).is_relative_to(TESTS))
    path = next(file for p in places if (file := p / script).is_file())
    owned, environment = dict(own or {}), environment or {}
    with held_ports(len(tasks)) as ports:
        it = Job(
            folder, path, tasks, arguments, owned, server, environment, alone, ports
        )
        try:
            if start is None or start:
                it.start(*(start or ()))
            yield it
        finally:
            for process in it.processes.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
