"""One process of a local cluster."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from hookbridge.jobs.loops.tasks.guard import Guard, end_with_launcher, send

# Set in tasks whose programs are to end together; `hookbridge run` reads it.
GROUP_STOP = "HOOKBRIDGE_GROUP_STOP"


class LocalTask:
    """One process of the cluster, in a process group of its own.

    So processes that it starts can be ended with it, and Ctrl-C reaches it only once,
    from the launcher.
    """

    def __init__(
        self,
        job: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        guard: Guard,
    ) -> None:
        launcher = os.getpid()

        def tie_to_launcher() -> None:
            guard.watch_this_process()
            end_with_launcher(launcher)

        self.serves: bool = job == "ps"
        self.is_empty: bool = False
        set_by_launcher = ("TF_CONFIG", GROUP_STOP)
        inherited = {k: v for k, v in os.environ.items() if k not in set_by_launcher}
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            env={**inherited, "PYTHONUNBUFFERED": "1", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=tie_to_launcher,
        )

    def send(self, number: int) -> None:
        """Send a signal to the task and all that it started."""
        if not self.is_empty:
            send(self.process.pid, number)

    @property
    def exit_code(self) -> int | None:
        """The exit code as a shell gives it; None while the task runs."""
        code = self.process.poll()
        return code if code is None or code >= 0 else 128 - code

    def look_whether_empty(self) -> bool:
        """Return whether the task and its process group have ended; True only once."""
        if self.is_empty or self.exit_code is None:
            return False
        self.is_empty = not send(self.process.pid, 0)
        return self.is_empty
