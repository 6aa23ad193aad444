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
from collections.abc import Iterator, Sequence
from pathlib import Path

# Shell command of the README -> its expected exit code, or what runs it instead.
COMMANDS: dict[str, int | str] = {
    'python -m pip install ".[tensorflow,tensorboard,estimator]"': 0,
    "hookbridge run examples/old_program.py": 0,
    "hookbridge --help": 0,
    "hookbridge docs quickstart": 0,
    "hookbridge doctor examples/old_program.py": 0,
    "hookbridge explain examples/digits_towers.py --host=fit": 0,
    "hookbridge migrate scan examples/old_program.py": 0,
    "hookbridge train examples/digits_keras.py --loop=fit --epochs=3 "
    "--train_files=examples/data/digits.csv --header_lines=1 --model_dir=runs/fit": 0,
    "hookbridge cluster --help": 0,
    # `make demo` makes an environment of its own, then runs what this test runs.
    "make demo": "tests/cli/test_demo_cluster.py",
    "make test": ".ci/run",
}
INSTALL = 'python -m pip install ".[tensorflow,tensorboard,estimator]"'
_BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.M | re.S)


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """Yields language and text of each block that is run, in order."""
    for match in _BLOCK.finditer(Path(page).read_text(encoding="utf-8")):
        yield match[1], match[2]


def run_command(line: str, requirements: Sequence[str]) -> None:
    """Runs one shell line, or prints which file runs it.

    Raises:
      SystemExit: the exit code is not the expected one.
    """
    expected = COMMANDS[line]
    if isinstance(expected, str):
        print(f"$ {line}  # run by {expected}", flush=True)
        return
    print(f"$ {line}", flush=True)
    command: str | list[str] = line
    if line == INSTALL:
        command = [sys.executable, *line.split()[1:-1], "--quiet", *requirements]
    code = subprocess.run(command, shell=isinstance(command, str)).returncode
    if code != expected:
        raise SystemExit(f"{line}: exit code {code}; expected {expected}.")


def main(page: str, requirements: Sequence[str]) -> None:
    """Runs every block."""
    # As in an activated environment: its commands are found first.
    folder = os.path.dirname(sys.executable)
    os.environ["PATH"] = os.pathsep.join([folder, os.environ["PATH"]])
    count = 0
    for language, text in blocks(page):
        if language == "sh":
            for line in text.splitlines():
                run_command(line, requirements)
        else:
            exec(compile(text, page, "exec"), {"__name__": "__main__"})
        count += 1
    if not count:
        raise SystemExit(f"{page} has no block that runs.")
    print(f"{count} blocks of {Path(page).name} have run.")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
