"""Runs the test suite in several environments, in parts of similar duration.

    python .ci/suites.py NAME=PYTHON [NAME=PYTHON ...] [-- PYTEST_ARGUMENT ...]

Unless the arguments name files, the folders under `tests` are divided among several
runs of pytest. At a time there is one run more than cores, because tests that start
processes often wait. Each line of output is shown as soon as it comes, after the names
of its environment and part. Failures and pytest's last lines are shown again at the
end. The exit code is 0 only if every run passed. A part in which `-k` or the like
chooses no test counts as passed if another part has such tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PRINTING = threading.Lock()
# Beginnings of the lines in which pytest says what failed, and why.
TROUBLE = ("FAILED ", "ERROR ", "E  ")
NO_TESTS = 5  # pytest's exit code
CORES = os.cpu_count() or 1
# One more than cores: tests that start processes often wait, and leave a core free.
PARTS_AT_A_TIME = CORES + 1
PARTS_PER_CORE = 3
# Seconds that the tests of a folder took on the newest TensorFlow and on 2.15.1, three
# parts at a time on two cores. Only their ratios matter; a folder that is not listed
# counts by the size of its files.
SECONDS = {
    "tests": (92, 65),
    "tests/adapters/fit_loop": (48, 45),
    "tests/adapters/guests": (7, 3),
    "tests/adapters/live_model": (22, 40),
    "tests/adapters/live_session": (11, 26),
    "tests/adapters/multi_worker": (37, 13),
    "tests/adapters/parameter_server": (49, 32),
    "tests/adapters/session_graph": (6, 6),
    "tests/adapters/session_loop": (43, 34),
    "tests/adapters/session_state": (14, 10),
    "tests/adapters/state": (7, 4),
    "tests/callbacks": (12, 4),
    "tests/chaos": (35, 17),
    "tests/cli": (99, 17),
    "tests/data_rows": (4, 3),
    "tests/differential": (41, 9),
    "tests/estimator": (54, 22),
    "tests/examples": (10, 5),
    "tests/loops": (13, 1),
    "tests/loops/clusters": (41, 21),
    "tests/loops/own_loop": (20, 22),
    "tests/loops/towers": (22, 8),
    "tests/migrate": (88, 7),
    "tests/report": (22, 2),
    "tests/run": (68, 42),
    "tests/traces": (86, 21),
    "tests/training": (148, 44),
    "tests/v1_mode": (20, 25),
}
BYTES_PER_SECOND = 500


class Run:
    """One run of pytest."""

    def __init__(self, name: str, python: str, arguments: list[str]) -> None:
        self.name = name
        self.tail: deque[str] = deque(maxlen=1)
        self.trouble: deque[str] = deque(maxlen=100)
        self.code: int | None = None
        self._command = [python, "-m", "pytest", *arguments]

    def run(self) -> None:
        """Runs pytest to its end."""
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


def parts(
    environment: str, arguments: list[str]
) -> Iterator[tuple[float, str, list[str]]]:
    """Yields size, name and files of each part.

    A part has whole folders. Small folders share a part, because each start of pytest
    takes seconds. If `arguments` name files, there is one part without files.
    """
    top = Path("tests")
    if not top.is_dir() or any(Path(a.partition("::")[0]).exists() for a in arguments):
        yield 0.0, environment, []
        return
    folders: dict[Path, list[Path]] = {}
    for file in top.rglob("test_*.py"):
        folders.setdefault(file.parent, []).append(file)
    sizes = {
        folder: sum(file.stat().st_size for file in files) / BYTES_PER_SECOND
        for folder, files in folders.items()
    }
    if "--fast" not in arguments:  # otherwise slow tests do not run: sizes count
        column = int("2.15" in environment)
        known = {Path(name): seconds[column] for name, seconds in SECONDS.items()}
        sizes |= {folder: known[folder] for folder in folders if folder in known}
    shares: list[list[Path]] = [[] for _ in range(PARTS_PER_CORE * CORES)]

    def size(share: list[Path]) -> float:
        return sum(sizes[folder] for folder in share)

    for folder in sorted(folders, key=lambda folder: -sizes[folder]):
        min(shares, key=size).append(folder)
    for share in filter(None, shares):
        name = f"{environment} {'+'.join(folder.name for folder in share)}"
        # Files, because a folder name would also run the tests of its subfolders.
        files = [str(file) for folder in share for file in sorted(folders[folder])]
        yield size(share), name, files


def main(arguments: list[str]) -> int:
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    environments, rest = arguments[:cut], arguments[cut + 1 :]
    start = time.monotonic()
    sized: list[tuple[float, Run]] = []
    for environment in environments:
        name, _, python = environment.partition("=")
        for size, part, files in parts(name, rest):
            sized.append((size, Run(part, python, [*rest, *files])))
    # The largest first, so that no large one runs alone at the end.
    runs = [run for _, run in sorted(sized, key=lambda each: -each[0])]
    with ThreadPoolExecutor(max_workers=PARTS_AT_A_TIME) as pool:
        for done in [pool.submit(run.run) for run in runs]:
            done.result()
    good = {0, NO_TESTS} if any(run.code != NO_TESTS for run in runs) else {0}
    for run in runs:
        if run.code not in good:
            print(f"\nWhat failed in {run.name}:", *run.trouble, sep="\n  ")
    print(f"\nAll suites, {time.monotonic() - start:.0f} seconds:")
    for run in runs:
        verdict = "passed" if run.code in good else f"FAILED (exit code {run.code})"
        last = run.tail[0] if run.tail else "no output"
        print(f"{run.name}: {verdict}: {last}")
    return int(any(run.code not in good for run in runs))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
