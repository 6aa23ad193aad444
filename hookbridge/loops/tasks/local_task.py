"""One process of a local cluster, and its output."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import selectors
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import IO, NamedTuple

from hookbridge.cluster import ClusterConfig
from hookbridge.loops.tasks import guard as guard_lib
from hookbridge.loops.tasks.noise import Noise

# Set in tasks whose programs are to end together; `hookbridge run` reads it.
GROUP_STOP = "HOOKBRIDGE_GROUP_STOP"
_CHUNK = 1 << 16


class Output:
    """Writes the lines of all tasks; drops lines that cannot be written.

    A task must not wait for ever because nobody reads its lines, or the disk is full.
    """

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream
        self._failed = stream is None  # it was closed: nobody wants the lines

    def write(self, line: str) -> None:
        """Writes a line; characters outside the stream's encoding are escaped."""
        if self._stream is None:
            return
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        text = line.encode(encoding, "backslashreplace").decode(encoding)
        try:
            self._stream.write(f"{text}\n")
            self._stream.flush()
        except (OSError, ValueError) as e:
            self._note(e)

    def close(self) -> None:
        """Drops text that cannot be written; else the interpreter's end would fail."""
        if self._stream is None:
            return
        try:
            self._stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def _note(self, error: Exception) -> None:
        if not self._failed:
            self._failed = True
            with contextlib.suppress(OSError, ValueError, AttributeError):
                sys.stderr.write(
                    "hookbridge: output of the tasks cannot be written and is "
                    f"dropped: {error}\n"
                )


class Order(NamedTuple):
    """What a task runs."""

    command: list[str]
    environment: dict[str, str]


class LocalTask:
    """One process of the cluster."""

    def __init__(
        self,
        config: ClusterConfig,
        order: Order,
        outputs: tuple[Output, Output],
        noise: Noise,
        log_dir: str = "",
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
            start_new_session=True,
            preexec_fn=functools.partial(guard_lib.end_with_launcher, os.getpid()),
        )
        sources = (self.process.stdout, self.process.stderr)
        log: IO[bytes] | None = None
        if log_dir:
            path = os.path.join(log_dir, f"{name.replace(' ', '_')}.log")
            log = open(path, "ab", buffering=0)  # noqa: SIM115 - as long as the task
        self.streams = [
            _Stream(source, name, output, noise, log)
            for source, output in zip(sources, outputs, strict=True)
            if source is not None
        ]

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


class _Stream:
    """What a task writes to one stream, passed on line by line."""

    def __init__(
        self,
        source: IO[bytes],
        name: str,
        output: Output,
        noise: Noise,
        log: IO[bytes] | None,
    ) -> None:
        os.set_blocking(source.fileno(), False)
        self.source = source
        self._noise, self._log = noise, log
        self._name = name
        self._output = output
        self._rest = b""

    def pass_on(self) -> bool:
        """Passes on the lines that are there; returns whether more may come."""
        try:
            read = os.read(self.source.fileno(), _CHUNK)
        except BlockingIOError:
            return True
        if self._log is not None:
            with contextlib.suppress(OSError):  # the disk is full
                self._log.write(read)
        *lines, self._rest = re.split(rb"\r\n|\r(?!$)|\n", self._rest + read)
        if not read and self._rest:
            lines.append(self._rest)
        for line in lines:
            text = line.decode(errors="replace").rstrip()
            if not self._noise.hides(text):
                self._output.write(f"[{self._name}] {text}")
        return bool(read)


class Outputs:
    """Passes on the output of all tasks, on the thread that waits for them.

    The launcher has no other thread: the system would take the end of each thread for
    the end of the parent of its tasks (`guard.end_with_launcher`).
    """

    def __init__(self, log_dir: str = "") -> None:
        self._log_dir = log_dir
        self._noise = Noise(bool(log_dir))
        self._to = Output(sys.stdout), Output(sys.stderr)
        self._selector = selectors.DefaultSelector()

    def start(self, config: ClusterConfig, order: Order) -> LocalTask:
        """Starts a task."""
        task = LocalTask(config, order, self._to, self._noise, self._log_dir)
        for stream in task.streams:
            self._selector.register(stream.source, selectors.EVENT_READ, stream)
        return task

    def wait(self, secs: float) -> None:
        """Passes on what is there, or comes within this time."""
        if not self._selector.get_map():
            time.sleep(secs)
            return
        for key, _ in self._selector.select(secs):
            if not key.data.pass_on():
                self._selector.unregister(key.fileobj)

    def drain(self, tasks: Iterable[LocalTask], secs: float) -> None:
        """Waits until the output of ended tasks has been passed on."""
        deadline = time.monotonic() + secs
        streams = [stream for task in tasks for stream in task.streams]
        while time.monotonic() < deadline and any(
            stream.source in self._selector.get_map() for stream in streams
        ):
            self.wait(deadline - time.monotonic())

    def close(self) -> None:
        """Ends what is written to."""
        self._selector.close()
        for output in self._to:
            output.close()


def _inherited() -> dict[str, str]:
    mine = ("TF_CONFIG", GROUP_STOP)
    others = {name: v for name, v in os.environ.items() if name not in mine}
    return {**others, "PYTHONUNBUFFERED": "1"}
