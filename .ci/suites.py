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

import json
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

PRINTING = threading.Lock()
# Beginnings of the lines in which pytest says what failed, and why.
TROUBLE = ("FAILED ", "ERROR ", "E  ")
NO_TESTS = 5  # pytest's exit code
CORES = os.cpu_count() or 1
# One more than cores: tests that start processes often wait, and leave a core free.
PARTS_AT_A_TIME = CORES + 1
PARTS_PER_CORE = 3
# What the last run measured; without it, a folder counts by the size of its files.
DURATIONS = Path("build") / "durations.json"
RESULTS = Path("build") / "results"
BYTES_PER_SECOND = 500


class Run:
    """One run of pytest."""

    def __init__(self, name: str, python: str, arguments: list[str]) -> None:
        self.name = name
        self.tail: deque[str] = deque(maxlen=1)
        self.trouble: deque[str] = deque(maxlen=100)
        self.code: int | None = None
        self._results = RESULTS / f"{name.replace('/', '_')}.xml"
        report = ["-o", "junit_family=xunit1", f"--junitxml={self._results}"]
        self._command = [python, "-m", "pytest", *report, *arguments]

    def seconds(self) -> dict[str, float]:
        """How long the tests of each folder took, once pytest has ended."""
        found: dict[str, float] = {}
        for _, case in ElementTree.iterparse(self._results):
            if case.tag == "testcase" and case.get("file"):
                folder = str(Path(case.attrib["file"]).parent)
                found[folder] = found.get(folder, 0.0) + float(case.attrib["time"])
        return found

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
    known = last_durations().get(environment, {})
    sizes |= {folder: known[str(folder)] for folder in folders if str(folder) in known}
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


def last_durations() -> dict[str, dict[str, float]]:
    """`{environment: {folder: seconds}}` of the last whole run, if there was one."""
    if not DURATIONS.is_file():
        return {}
    durations: dict[str, dict[str, float]] = json.loads(DURATIONS.read_text("utf-8"))
    return durations


def keep_durations(runs: list[tuple[str, Run]]) -> None:
    """Writes what the next run divides by; `runs` are environments and their runs."""
    durations = last_durations()
    for environment, run in runs:
        durations.setdefault(environment, {}).update(run.seconds())
    DURATIONS.parent.mkdir(exist_ok=True)
    DURATIONS.write_text(json.dumps(durations, indent=1, sort_keys=True), "utf-8")


def main(arguments: list[str]) -> int:
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    environments, rest = arguments[:cut], arguments[cut + 1 :]
    start = time.monotonic()
    sized: list[tuple[float, Run]] = []
    of_environment: list[tuple[str, Run]] = []
    for environment in environments:
        name, _, python = environment.partition("=")
        for size, part, files in parts(name, rest):
            run = Run(part, python, [*rest, *files])
            sized.append((size, run))
            of_environment.append((name, run))
    # The largest first, so that no large one runs alone at the end.
    runs = [run for _, run in sorted(sized, key=lambda each: -each[0])]
    with ThreadPoolExecutor(max_workers=PARTS_AT_A_TIME) as pool:
        for done in [pool.submit(run.run) for run in runs]:
            done.result()
    good = {0, NO_TESTS} if any(run.code != NO_TESTS for run in runs) else {0}
    if rest in ([], ["-q"]) and all(run.code in good for run in runs):
        keep_durations(of_environment)
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
