"""Ends the tasks of a local cluster if their launcher was killed before it did so.

The launcher starts this file as a process of its own. Into its input each task writes
`PID`, the number of its process group, before its program runs, and the launcher writes
`-PID` for a group that is empty. At its own end the launcher kills this process: an
input that ends means that the launcher was killed.

On Linux the system itself sends SIGTERM to a task whose launcher has died, also if the
guard is killed too. The guard ends what the tasks have started, and who does not end.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import signal
import socket
import subprocess
import sys
import time

POLL_SECS = 0.05
_SIGNAL_OF_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG
# Python ignores SIGPIPE, but no longer in a process that is about to run a program.
_WITHOUT_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)
# Found before a fork, after which nothing may be loaded.
_PRCTL = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)


class Guard:
    """The launcher's end of the connection."""

    def __init__(self, grace_secs: float) -> None:
        # Not a pipe: who writes into one that nobody reads gets SIGPIPE, which ends a
        # task before its program runs.
        self._socket, end = socket.socketpair()
        with end:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, str(grace_secs)],
                stdin=end.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # it survives signals to the launcher's group
            )

    def watch_this_process(self) -> None:
        """End the process group of this new task if the launcher is killed."""
        self._write(str(os.getpid()))

    def forget(self, group: int) -> None:
        """Stop watching an empty group, whose number the system may use again."""
        self._write(f"-{group}")

    def close(self) -> None:
        """End the guard: the launcher has ended all tasks itself."""
        self._process.kill()
        self._process.wait()
        self._socket.close()

    def _write(self, word: str) -> None:
        with contextlib.suppress(OSError):  # somebody has killed the guard
            self._socket.send(f"{word}\n".encode(), _WITHOUT_SIGNAL)


def end_with_launcher(launcher: int) -> None:
    """Tie the life of this new process to that of its launcher, on Linux."""
    if _PRCTL is not None:
        _PRCTL(_SIGNAL_OF_PARENTS_DEATH, int(signal.SIGTERM))
        if os.getppid() != launcher:  # it died before this call
            os._exit(128 + signal.SIGTERM)


def send(group: int, number: int) -> bool:
    """Send a signal to a process group, or 0 for none; return whether it has any."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)
        return True
    return False


def main(grace_secs: float) -> None:
    """Read from the launcher, and end the groups that it left running."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        word = line.strip()
        if word.startswith("-"):
            groups.discard(int(word[1:]))
        else:
            groups.add(int(word))
    for group in groups:
        if _PRCTL is None:
            send(group, signal.SIGTERM)
        else:
            # The system has told the task itself. A second SIGTERM would end it before
            # it has saved.
            _terminate_children(group)
    deadline = time.monotonic() + grace_secs
    while any(send(group, 0) for group in groups) and time.monotonic() < deadline:
        time.sleep(POLL_SECS)
    for group in groups:
        send(group, signal.SIGKILL)


def _terminate_children(group: int) -> None:
    """Send SIGTERM to all of a process group but its leader."""
    for path in glob.glob("/proc/[0-9]*"):
        pid = int(os.path.basename(path))
        with contextlib.suppress(OSError):
            if pid != group and os.getpgid(pid) == group:
                os.kill(pid, signal.SIGTERM)


if __name__ == "__main__":
    main(float(sys.argv[1]))
