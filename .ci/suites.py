"""Runs the test suite in several environments side by side.

    python .ci/suites.py NAME=PYTHON [NAME=PYTHON ...] [-- PYTEST_ARGUMENT ...]

Lines come out as they are written, each with the name of its environment before
it; what failed and pytest's closing lines come once more at the end. The exit code
is 0 only if every suite passed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import deque

PRINTING = threading.Lock()
# How pytest begins the lines that say what failed, and why.
TROUBLE = ("FAILED ", "ERROR ", "E  ")


class Suite:
    """One environment's run of pytest."""

    def __init__(self, name: str, python: str, arguments: list[str]) -> None:
        self.name = name
        self.tail: deque[str] = deque(maxlen=1)
        self.trouble: deque[str] = deque(maxlen=100)
        self.code: int | None = None
        self._command = [python, "-m", "pytest", *arguments]
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        with subprocess.Popen(
            self._command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONUNBUFFERED": "1"},
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                self.tail.append(line.rstrip())
                if line.startswith(TROUBLE):
                    self.trouble.append(line.rstrip())
                with PRINTING:
                    print(f"[{self.name}] {line.rstrip()}", flush=True)
        self.code = process.returncode


def main(arguments: list[str]) -> int:
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    environments, rest = arguments[:cut], arguments[cut + 1 :]
    start = time.monotonic()
    suites = []
    for environment in environments:
        name, _, python = environment.partition("=")
        suites.append(Suite(name, python, rest))
    for suite in suites:
        suite.start()
    for suite in suites:
        suite.join()
    for suite in suites:
        if suite.code != 0:
            print(f"\nWhat failed in {suite.name}:", *suite.trouble, sep="\n  ")
    print(f"\nAll suites, {time.monotonic() - start:.0f} seconds:")
    for suite in suites:
        verdict = "passed" if suite.code == 0 else f"FAILED (exit code {suite.code})"
        last = suite.tail[0] if suite.tail else "no output"
        print(f"{suite.name}: {verdict}: {last}")
    return int(any(suite.code != 0 for suite in suites))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
