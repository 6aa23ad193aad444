"""A process that a fork server starts, as the process that asks for it sees it.

As a program, this file is the `python` that a forked process uses to start others. It
runs its task in a fork, and passes on signals and the exit code. With options other
than `-m` and `-c` it runs the real interpreter.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


class Forked:
    """One process, with the part of `subprocess.Popen` that the tests need.

    The process is killed when this object is deleted, so it does not outlive the
    process that asked for it. `files` become its descriptors 0, 1 and 2.
    """

    def __init__(
        self,
        address: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: str,
        files: Sequence[int],
        *,
        replaces: bool = False,
    ) -> None:
        order = {
            "argv": [*arguments],
            "env": {**environment},
            "folder": folder,
            "replaces": replaces,
        }
        self._bytes = b""
        self._code: int | None = None
        self._lock = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(address)
        socket.send_fds(self._socket, [b"\n"], files)
        self._socket.sendall(json.dumps(order).encode() + b"\n")
        pid = self._told(None)
        assert pid is not None
        self.pid = pid

    def poll(self) -> int | None:
        """The exit code; None if the process has not ended."""
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Waits until the process has ended; returns its exit code."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"task {self.pid}", timeout or 0.0)
        return code

    def _ended(self, timeout: float | None) -> int | None:
        with self._lock:
            if self._code is None:
                self._code = self._told(timeout)
            return self._code

    def _told(self, timeout: float | None) -> int | None:
        """The next number that the server sends; None if none comes in time."""
        until = None if timeout is None else time.monotonic() + timeout
        while b"\n" not in self._bytes:
            left = None if until is None else max(0.0, until - time.monotonic())
            self._socket.settimeout(left)
            try:
                said = self._socket.recv(64)
            except (BlockingIOError, TimeoutError):
                return None
            if not said:
                raise RuntimeError("the fork server has ended")
            self._bytes += said
        line, _, self._bytes = self._bytes.partition(b"\n")
        return int(line)


def _pass_on(pid: int) -> None:
    while True:
        number = signal.sigwait(PASSED_ON)
        try:
            os.killpg(pid, number)
        except ProcessLookupError:  # it has no group yet
            os.kill(pid, number)


def main() -> None:
    """Runs as `python` does."""
    words = sys.argv[1:]
    plain = words and (words[0] in ("-m", "-c") or not words[0].startswith("-"))
    if not plain or "--multiprocessing-fork" in words:
        os.execv(sys.executable, [sys.executable, *words])
    # Signals wait from now on, until `_pass_on` can take them.
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    address = os.path.join(os.path.dirname(os.path.abspath(__file__)), "socket")
    it = Forked(address, words, os.environ, os.getcwd(), (0, 1, 2), replaces=True)
    threading.Thread(target=_pass_on, args=(it.pid,), daemon=True).start()
    code = it.wait()
    if code < 0:
        if -code in PASSED_ON:
            signal.signal(-code, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
