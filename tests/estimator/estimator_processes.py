"""Starts the processes of an Estimator job on this machine and ends all of them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fork_server import ForkServer
from forked_python import Forked
from idle_clock import idle_secs

TIMEOUT_IDLE_SECS = 60.0
HERE = Path(__file__).resolve().parent
Processes = Mapping[str, Forked]


def free_ports(count: int) -> list[int]:
    """Ports on which nothing listens at this moment."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextlib.contextmanager
def job(
    script: str,
    folder: Path,
    tasks: Sequence[str],
    arguments: Sequence[str],
    server: ForkServer,
) -> Iterator[Processes]:
    """Starts `script` once for each task; no process outlives the block.

    Each task gets `arguments` and the path of its report, `<folder>/<task>.json`. Its
    output goes to `<folder>/<task>.log`. An evaluator is no part of the cluster. A
    single task gets no `TF_CONFIG`.
    """
    members = [task for task in tasks if task != "evaluator"]
    ports = free_ports(len(members))
    spec = {task: [f"127.0.0.1:{port}"] for task, port in zip(members, ports)}  # noqa: B905
    processes: dict[str, Forked] = {}
    try:
        for task in tasks:
            config = {"cluster": spec, "task": {"type": task, "index": 0}}
            environment = {"TF_CONFIG": json.dumps(config)} if len(tasks) > 1 else {}
            processes[task] = server.start(
                [str(HERE / script), *arguments, str(folder / f"{task}.json")],
                environment,
                folder / f"{task}.log",
            )
        yield processes
    finally:
        for process in processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


def codes_when_done(
    processes: Processes, tasks: Sequence[str]
) -> dict[str, int | None]:
    """Waits for `tasks`; returns all exit codes, None for tasks that still run."""
    began = idle_secs()
    while any(processes[task].poll() is None for task in tasks):
        if idle_secs() - began > TIMEOUT_IDLE_SECS:
            break
        time.sleep(0.05)
    return {task: process.poll() for task, process in processes.items()}


def log(folder: Path, task: str) -> str:
    """The end of the output of a task."""
    return (folder / f"{task}.log").read_text(errors="replace")[-3000:]
