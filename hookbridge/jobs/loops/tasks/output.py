"""The output of all tasks of a local cluster, on the streams of their launcher."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import shutil
import sys
import time
from collections.abc import Iterable
from typing import IO

from hookbridge.ground.texts import live_lines

_CHUNK = 1 << 16
# What every process says when it imports TensorFlow and starts a server, and what its
# calls say about calls that were cancelled. Warnings of other files and errors stay.
_NOISE = re.compile(
    r"^(I\d{4} |[-\d]{10} [\d:.]{15}: I ).*\.cc:\d+\] |"
    r"local_rendezvous\.cc:\d+\] Local rendezvous is aborting|"
    r"oneDNN custom operations|cudart_stub|cpu_feature_guard|cuda_executor|"
    r"failed call to cuInit|Unable to register cu|TF-TRT Warning|"
    r"All log messages before absl::InitializeLog"
)
# Further lines of these messages; an error has such lines too.
_MORE_NOISE = re.compile(
    r"\s*\[\[|Additional GRPC error information|:UNKNOWN:Error received|"
    r"To enable the following instructions"
)
# A worker says it whenever another one has made the last updates.
_ONCE = re.compile(r"global step \(tf.train.get_global_step\) has not been increased")


class Outputs:
    """Passes on the output of all tasks, on the thread that waits for them.

    On a terminal, a line that a task rewrites by carriage returns stands below all
    other lines. Lines that cannot be written are dropped: a task must not wait for ever
    because nobody reads its lines, or the disk is full.

    The launcher has no other thread: the system would take the end of each thread for
    the end of the parent of its tasks (`guard.end_with_launcher`).
    """

    def __init__(self, log_dir: str) -> None:
        self._log_dir = log_dir
        self._selector = selectors.DefaultSelector()
        self._has_failed: set[IO[str]] = set()
        self._terminal = next(filter(_is_terminal, (sys.stderr, sys.stdout)), None)
        self._live: dict[_Source, str] = {}
        self._drawn = 0
        self._said_once = False
        # Who sets the level of TensorFlow's log has chosen what to see.
        self._hides_noise = "TF_CPP_MIN_LOG_LEVEL" not in os.environ

    @property
    def environment(self) -> dict[str, str]:
        """What tasks have to know about the terminal."""
        return {live_lines.VARIABLE: "1"} if self._terminal else {}

    def follow(self, name: str, pipes: Iterable[IO[bytes] | None]) -> None:
        """Pass on what a task writes into the pipes of its two streams."""
        log: IO[bytes] | None = None
        if self._log_dir:
            path = os.path.join(self._log_dir, f"{name.replace(' ', '_')}.log")
            log = open(path, "ab", buffering=0)  # noqa: SIM115 - as long as the task
        for pipe, stream in zip(pipes, (sys.stdout, sys.stderr), strict=True):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            source = _Source(name, pipe, stream, log)
            self._selector.register(pipe, selectors.EVENT_READ, source)

    def wait(self, secs: float) -> None:
        """Pass on what is there, or comes within this time."""
        if not self._selector.get_map():
            time.sleep(secs)
            return
        for key, _ in self._selector.select(secs):
            if not self._pass_on(key.data):
                self._selector.unregister(key.fileobj)

    def drain(self, secs: float) -> None:
        """Pass on the output of ended tasks; wait for more of it at most this long."""
        deadline = time.monotonic() + secs
        while self._selector.get_map() and time.monotonic() < deadline:
            self.wait(deadline - time.monotonic())
        self.wait(0.0)  # a busy machine may have held this process up

    def close(self) -> None:
        """Drop text that cannot be written; else the interpreter's end would fail."""
        self._selector.close()
        self._erase()
        for stream in filter(None, (sys.stdout, sys.stderr)):
            try:
                stream.flush()
            except (OSError, ValueError):
                with contextlib.suppress(OSError, ValueError):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

    def _pass_on(self, source: _Source) -> bool:
        """Pass on the lines that are there; return whether more may come."""
        try:
            read = os.read(source.pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return True
        lines = source.lines(read, self._terminal is not None)
        self._erase()
        for line in lines:
            if not self._hides(source, line):
                self._write(source.stream, f"[{source.name}] {line}\n")
        self._live[source] = source.live_line if self._terminal else ""
        self._draw()
        return bool(read)

    def _hides(self, source: _Source, line: str) -> bool:
        is_noise = _NOISE.search(line) or (source.in_noise and _MORE_NOISE.match(line))
        source.in_noise = bool(is_noise)
        if self._hides_noise and is_noise:
            return True
        if not _ONCE.search(line):
            return False
        said, self._said_once = self._said_once, True
        return said

    def _erase(self) -> None:
        if self._drawn:
            self._write(self._terminal, f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0

    def _draw(self) -> None:
        width = (shutil.get_terminal_size().columns or 80) - 1  # some have no size
        lines = [f"[{s.name}] {text}"[:width] for s, text in self._live.items() if text]
        self._drawn = len(lines)
        if lines:
            self._write(self._terminal, "".join(f"{line}\n" for line in lines))

    def _write(self, stream: IO[str] | None, text: str) -> None:
        """Write; characters outside the stream's encoding are escaped."""
        if stream is None:  # it was closed: nobody wants the lines
            return
        encoding = getattr(stream, "encoding", None) or "utf-8"
        try:
            stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
            stream.flush()
        except (OSError, ValueError) as e:
            if stream not in self._has_failed:
                self._has_failed.add(stream)
                with contextlib.suppress(OSError, ValueError, AttributeError):
                    sys.stderr.write(
                        "hookbridge: dropped output of the tasks, because it cannot "
                        f"be written: {e}\n"
                    )


class _Source:
    """One stream of a task, taken apart into lines."""

    def __init__(
        self, name: str, pipe: IO[bytes], stream: IO[str] | None, log: IO[bytes] | None
    ) -> None:
        self.name, self.pipe, self.stream = name, pipe, stream
        self.in_noise = False
        self._log = log
        self._rest = b""

    def lines(self, read: bytes, rewrites: bool) -> list[str]:
        """Return the lines that `read` ends; nothing read is the end of the stream.

        Args:
          read: the bytes that came.
          rewrites: whether a carriage return begins the line anew, or ends it.
        """
        if self._log is not None:
            with contextlib.suppress(OSError):  # the disk is full
                self._log.write(read)
        live = b""
        if rewrites and self.live_line and read[:1] not in b"\r\n":
            # Another writer, such as TensorFlow's log: the live line stays.
            live, self._rest = self._rest, b""
        ends = rb"\r*\n" if rewrites else rb"\r\n|\r(?!$)|\n"
        *lines, self._rest = re.split(ends, self._rest + read)
        self._rest = self._rest or live
        if not read and self._rest:
            lines.append(self._rest)
            self._rest = b""
        return [_text(line, rewrites) for line in lines]

    @property
    def live_line(self) -> str:
        """The line that the task is rewriting; empty if there is none."""
        return _text(self._rest, True) if b"\r" in self._rest else ""


def _text(line: bytes, rewrites: bool) -> str:
    text = line.decode(errors="replace").rstrip()
    return (
        text.rpartition("\r")[2].replace(live_lines.CLEAR[1:], "") if rewrites else text
    )


def _is_terminal(stream: IO[str] | None) -> bool:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return stream is not None and stream.isatty()
    return False
