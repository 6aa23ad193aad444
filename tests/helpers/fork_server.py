"""Starts tasks as forks of a process that has imported TensorFlow already.

A cluster of many short jobs spends most of its time on imports; each task is a process
of its own all the same. `python fork_server.py` takes orders on its standard input, a
line of JSON each, and writes `[pid, exit code]` of those that have ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class Forked:
    """One task; as much of `subprocess.Popen` as the jobs need."""

    def __init__(self, pid: int, ended: threading.Event, codes: dict[int, int]) -> None:
        self.pid = pid
        self._ended, self._codes = ended, codes

    def poll(self) -> int | None:
        """The exit code, if it has ended."""
        return self._codes.get(self.pid)

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended."""
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired(f"task {self.pid}", timeout or 0.0)
        return self._codes[self.pid]


class ForkServer:
    """The process that forks, from the tests' side."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve())],
            # Threads of a matrix library do not survive a fork.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self._codes: dict[int, int] = {}
        self._tasks: dict[int, threading.Event] = {}
        self._started: list[int] = []
        self._news = threading.Condition()
        self._one_at_a_time = threading.Lock()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            pid, code = json.loads(line)
            with self._news:
                if code is None:
                    self._tasks[pid] = threading.Event()
                    self._started.append(pid)
                else:
                    self._codes[pid] = code
                    self._tasks[pid].set()
                self._news.notify_all()

    def start(
        self, arguments: Sequence[str], environment: Mapping[str, str], log: Path
    ) -> Forked:
        """Starts a script; what it prints is added to `log`.

        Args:
          arguments: the path of the script, and its arguments.
          environment: what is set besides this process's environment.
          log: a file.
        """
        order = {"argv": [*arguments], "env": {**environment}, "log": str(log)}
        assert self._process.stdin is not None
        with self._one_at_a_time, self._news:
            print(json.dumps(order), file=self._process.stdin, flush=True)
            assert self._news.wait_for(lambda: bool(self._started), 60), order
            pid = self._started.pop()
        return Forked(pid, self._tasks[pid], self._codes)

    def close(self) -> None:
        """Ends it; it ends what it has started."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        finally:
            self._process.kill()


@contextlib.contextmanager
def fork_server() -> Iterator[ForkServer]:
    """A fork server; no process outlives the block."""
    server = ForkServer()
    try:
        yield server
    finally:
        server.close()


def _run(order: Mapping[str, Any]) -> None:
    """The forked process; it ends as any script does."""
    os.setsid()
    with open(order["log"], "ab") as log, open(os.devnull) as nothing:
        for number in (1, 2):
            os.dup2(log.fileno(), number)
        os.dup2(nothing.fileno(), 0)
    os.environ.update(order["env"])
    sys.argv = order["argv"]
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    runpy.run_path(sys.argv[0], run_name="__main__")
    sys.exit(0)


def main() -> None:
    """Forks as it is told, until its standard input is closed."""
    sys.path.insert(0, str(ROOT))
    import tensorflow  # noqa: F401

    import hookbridge as hb
    from hookbridge.loops.sessions import callable_session  # noqa: F401

    _ = (hb.loops.SessionCluster, hb.as_hooks, hb.loops.TowerLoop)
    running: set[int] = set()
    lock = threading.Lock()

    def say(pid: int, code: int | None) -> None:
        with lock:
            print(json.dumps([pid, code]), flush=True)

    def reap(pid: int) -> None:
        _, status = os.waitpid(pid, 0)
        running.discard(pid)
        say(pid, os.waitstatus_to_exitcode(status))

    for line in sys.stdin:
        order = json.loads(line)
        with lock:  # the child gets no lock that another thread holds
            pid = os.fork()
        if pid == 0:
            _run(order)
        running.add(pid)
        say(pid, None)
        threading.Thread(target=reap, args=(pid,), daemon=True).start()
    for pid in list(running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
