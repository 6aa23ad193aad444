"""Runs a page from top to bottom, as a reader does who pastes each block.

    python .ci/run_readme.py README.md REQUIREMENT...

It runs the shell commands and Python programs of README.md with this interpreter, whose
environment may be empty. The current folder has to be a copy of the sources. Where the
page installs hookbridge, this installs the requirements instead, such as a wheel and a
TensorFlow.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

# Shell command of the README -> what runs it instead.
ELSEWHERE = {
    # It makes an environment of its own, then runs what this test runs.
    "make demo": "tests/cli/test_demo_cluster.py",
    "make test": ".ci/run",
}
INSTALL = 'python -m pip install ".[tensorflow,tensorboard,estimator]"'
_BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.M | re.S)


def run_command(line: str, requirements: Sequence[str]) -> None:
    """Runs one shell line, or prints which file runs it."""
    line = line.removesuffix(" --open")  # nobody looks at the page
    if line in ELSEWHERE:
        print(f"$ {line}  # run by {ELSEWHERE[line]}", flush=True)
        return
    print(f"$ {line}", flush=True)
    command: str | list[str] = line
    if line == INSTALL:
        command = [sys.executable, *line.split()[1:-1], "--quiet", *requirements]
    subprocess.run(command, shell=isinstance(command, str), check=True)


def main(page: str, requirements: Sequence[str]) -> None:
    """Runs every block."""
    # As in an activated environment: its commands are found first.
    folder = os.path.dirname(sys.executable)
    os.environ["PATH"] = os.pathsep.join([folder, os.environ["PATH"]])
    blocks = _BLOCK.findall(Path(page).read_text(encoding="utf-8"))
    for language, text in blocks:
        if language == "sh":
            for line in text.splitlines():
                run_command(line, requirements)
        else:
            exec(compile(text, page, "exec"), {"__name__": "__main__"})
    print(f"{len(blocks)} blocks of {Path(page).name} have run.")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
