"""One process of a local cluster, and its output."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from typing import IO, NamedTuple

from hookbridge.cluster import ClusterConfig
from hookbridge.loops.tasks import guard as guard_lib

# Set in tasks whose programs are to end together; `hookbridge run` reads it.
GROUP_STOP = "HOOKBRIDGE_GROUP_STOP"


class Output:
    """Writes the lines of all tasks; drops lines that cannot be written.

    A task must not wait for ever because nobody reads its lines, or the disk is full.
    """

    _lock = threading.Lock()  # one line at a time, for all tasks and streams

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._failed = False

    def write(self, line: str) -> None:
        """Writes a line; characters outside the stream's encoding are escaped."""
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        text = line.encode(encoding, "backslashreplace").decode(encoding)
        with self._lock:
            try:
                self._stream.write(f"{text}\n")
                self._stream.flush()
            except (OSError, ValueError) as e:
                self._note(e)

    def close(self) -> None:
        """Drops text that cannot be written; else the interpreter's end would fail."""
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


class Order(NamedTuple):
    """What a task runs.

    Attributes:
      command: program and arguments.
      environment: variables for it alone.
    """

    command: list[str]
    environment: dict[str, str]


class LocalTask:
    """One process of the cluster, and the threads that pass on its output.

    Attributes:
      serves: whether it is a parameter server.
      is_empty: whether the task and all that it started have ended.
      process: the process.
    """

    def __init__(
        self,
        config: ClusterConfig,
        order: Order,
        outputs: tuple[Output, Output],
    ) -> None:
        self.serves = config.task_type == "ps"
        self.is_empty = False
        name = f"{config.task_type} {config.task_index}"
        # In a process group of its own, so that processes it starts can be ended with
        # it, and Ctrl-C reaches it only once, from the launcher.
        self.process = subprocess.Popen(
            order.command,
            env={**_inherited(), **order.environment},
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
        """Whether the task and its process group have ended; True only once."""
        if self.is_empty or self.exit_code is None:
            return False
        self.is_empty = not guard_lib.has_members(self.process.pid)
        return self.is_empty

    def drain(self) -> None:
        """Waits until the task's output has been passed on, at most 1 s per stream."""
        for thread in self._threads:
            thread.join(timeout=1.0)


def _copy(source: IO[str], name: str, output: Output) -> None:
    for line in source:
        output.write(f"[{name}] {line.rstrip()}")


def _inherited() -> dict[str, str]:
    mine = ("TF_CONFIG", GROUP_STOP)
    others = {name: v for name, v in os.environ.items() if name not in mine}
    return {**others, "PYTHONUNBUFFERED": "1"}
