"""Starts the processes of a parameter-server cluster and ends all of them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fork_server import ForkServer
from forked_python import Forked
from idle_clock import idle_secs

from hookbridge.loops.tasks.local_cluster import LocalCluster

HERE = Path(__file__).resolve().parent
TIMEOUT_IDLE_SECS = 60.0


class Processes:
    """A chief, 2 workers and 1 server as processes of this machine."""

    def __init__(
        self,
        folder: Path,
        script: str,
        server: ForkServer,
        environment: Mapping[str, str],
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._script = script
        self._server = server
        self._environment = environment
        self._configs = {
            f"{c.task_type} {c.task_index}": c
            for c in LocalCluster(num_workers=2, num_ps=1).configs()
        }
        self.processes: dict[str, Forked] = {}
        self.ended: dict[str, float] = {}

    def start(self, *tasks: str) -> None:
        """Starts tasks; all of them when none is named."""
        for task in tasks or self._configs:
            self.processes[task] = self._server.start(
                [str(HERE / self._script), str(self.folder)],
                {"TF_CONFIG": self._configs[task].to_json(), **self._environment},
                self.folder / f"{task.replace(' ', '_')}.log",
            )

    def send(self, task: str, number: int) -> float:
        """Sends a signal; returns the time of it by `idle_secs`."""
        os.killpg(self.processes[task].pid, number)
        return idle_secs()

    def notes(self, event: str | None = None) -> list[dict[str, Any]]:
        """What the chief noted, in order."""
        path = self.folder / "events.jsonl"
        if not path.exists():
            return []
        noted = [json.loads(line) for line in path.read_text().split("\n")[:-1]]
        return [n for n in noted if event is None or n["event"] == event]

    def note(self, event: str) -> dict[str, Any]:
        """The only note of that name."""
        (noted,) = self.notes(event)
        return noted

    def wait_for(self, event: str) -> dict[str, Any]:
        """Waits until the chief noted `event`."""
        began = idle_secs()
        while idle_secs() - began < TIMEOUT_IDLE_SECS:
            for noted in self.notes(event):
                return noted
            assert self.processes["chief 0"].poll() is None, self.logs()
            time.sleep(0.05)
        raise AssertionError(f"the chief never noted {event}: {self.logs()}")

    def wait(self) -> dict[str, int]:
        """Waits until every process has ended; returns their exit codes."""
        began = idle_secs()
        while len(self.ended) < len(self.processes):
            for task, process in self.processes.items():
                if process.poll() is not None:
                    self.ended.setdefault(task, idle_secs())
            if idle_secs() - began > TIMEOUT_IDLE_SECS:
                break
            time.sleep(0.05)
        left = [t for t, p in self.processes.items() if p.poll() is None]
        assert not left, f"{left} did not end: {self.logs()}"
        return {t: p.wait() for t, p in self.processes.items()}

    def logs(self) -> str:
        """The last lines that each process printed."""
        return "\n".join(
            f"== {path.name}\n{path.read_text(errors='replace')[-3000:]}"
            for path in sorted(self.folder.glob("*.log"))
        )


@contextlib.contextmanager
def cluster(
    folder: Path, script: str, server: ForkServer, **environment: str
) -> Iterator[Processes]:
    """A cluster whose tasks are not started yet; none outlives the block."""
    it = Processes(folder, script, server, environment)
    try:
        yield it
    finally:
        for process in it.processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
