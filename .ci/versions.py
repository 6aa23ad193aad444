"""Runs a chosen part of the suite on each supported version of TensorFlow.

    python .ci/versions.py                   every row; writes docs/versions.md
    python .ci/versions.py --only=2.18       the rows of this TensorFlow
    python .ci/versions.py --of_today        one release, another one every day

Each row has an environment of its own below `.venv`. The chosen tests meet what changes
between versions: private names, lifecycles, stock guests, state, one cluster, the
README's programs and the demo. The exit code is 0 only if every row passed. A row of
today whose packages cannot be had is not tried, and says so.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parent.parent
PAGE = TOP / "docs" / "versions.md"
EXTRAS = ".[test,estimator,contrib]"
# The nightly packages have names of their own, which the extras do not ask for.
NIGHTLY = (
    *(".[test]", "tensorflow-estimator==2.15.0"),
    *("tf-nightly", "tf_keras-nightly"),
)
TESTS = (
    "tests/test_private_names.py",
    "tests/test_private_attributes.py",
    "tests/test_private_frames.py",
    "tests/test_lifecycle.py",
    "tests/adapters/fit_loop/test_hook_support.py",
    "tests/adapters/session_loop/test_callback_support.py",
    "tests/adapters/state/test_callback_state.py",
    "tests/loops/clusters/test_endings.py::"
    "test_an_evaluator_ends_too_after_the_last_checkpoint",
    "tests/test_readme.py::test_python_blocks_run[README.md]",
    "tests/test_readme.py::test_python_blocks_run[docs/quickstart.md]",
)
DEMO = ("-m", "hookbridge", "demo", "--epochs=1")
SHOWN = ("tensorflow", "keras", "tf_keras", "numpy", "google.protobuf")
FAILED_LINES = 40


class Row(NamedTuple):
    """A TensorFlow, and what is installed beside it."""

    tensorflow: str
    python: str
    beside: tuple[str, ...] = ()
    # Installed without their requirements, which name another TensorFlow.
    alone: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """For the folder of the environment."""
        return f"tf-{self.tensorflow}-py{self.python}"

    @property
    def packages(self) -> tuple[str, ...]:
        """What pip installs."""
        if self.tensorflow == "nightly":
            return NIGHTLY
        return (EXTRAS, f"tensorflow=={self.tensorflow}", *self.beside)


# The oldest and the newest Keras that each TensorFlow takes, both ends of numpy and of
# protobuf, all Pythons.
ROWS = (
    Row("2.16.2", "3.10", ("tf_keras==2.16.*", "keras==3.3.*", "numpy==1.26.*")),
    Row("2.16.2", "3.12", ("tf_keras==2.16.*", "numpy==1.26.*")),
    Row("2.17.1", "3.11", ("tf_keras==2.17.*", "keras==3.5.*")),
    Row("2.18.1", "3.12", ("tf_keras==2.18.*", "numpy==2.0.*")),
    Row("2.19.1", "3.11", ("tf_keras==2.19.*", "keras==3.9.*")),
    Row("2.20.0", "3.13", ("tf_keras==2.20.*", "protobuf==6.*")),
    Row("2.21.0", "3.12", ("tf_keras==2.21.*", "protobuf==7.*")),
    Row("2.22.0rc0", "3.13", alone=("tf_keras==2.21.*",)),
    Row("2.22.0rc0", "3.14", alone=("tf_keras==2.21.*",)),
    Row("nightly", "3.13"),
)


def main() -> int:
    """Tries the rows that the flags choose."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", help="rows of TensorFlow versions that begin so")
    parser.add_argument("--of_today", action="store_true", help="one row by the date")
    flags = parser.parse_args()
    rows = [row for row in ROWS if row.tensorflow.startswith(flags.only or "")]
    if flags.of_today:
        rows = [row for row in rows if row.tensorflow != "nightly"]
        rows = [rows[datetime.date.today().toordinal() % len(rows)]]
    codes = []
    for row in rows:
        try:
            python = environment(row)
        except subprocess.CalledProcessError as e:
            print(f"{row.name} could not be installed, and was not tried: {e}")
            codes.append(int(not flags.of_today))
            continue
        result, code = tried(row, python)
        codes.append(code)
        if not flags.of_today:
            write(row, result)
    return int(any(codes))


def tried(row: Row, python: str) -> tuple[str, int]:
    """What a row's tests gave in one line, and pytest's exit code."""
    done, lines = _run(TOP, python, "-m", "pytest", "-q", "--tb=short", *TESTS)
    print(f"{row.name}: {lines[-1]}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        demo, demo_lines = _run(Path(folder), python, *DEMO)
    for code, shown in ((done, lines), (demo, demo_lines)):
        if code:
            print("\n".join(shown[-FAILED_LINES:]), flush=True)
    counts = re.findall(r"\d+ (?:passed|failed|errors?)", lines[-1])
    installed = versions(python)
    cells = [row.tensorflow, row.python, *installed[1:]]
    if row.tensorflow == "nightly":
        cells[0] = f"nightly ({installed[0]})"
    counts.append("demo failed" if demo else "demo")
    cells += [", ".join(counts), datetime.date.today().isoformat()]
    return f"| {' | '.join(cells)} |", done or demo


def _run(folder: Path, *command: str) -> tuple[int, list[str]]:
    """The exit code and the output of a command that runs in a folder."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(TOP)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout.splitlines() or ["no output"]


def environment(row: Row) -> str:
    """The Python of the row's environment, which is made if it is not there."""
    folder = TOP / ".venv" / row.name
    python = str(folder / "bin" / "python")
    ready = folder / ".installed"
    if not ready.exists():
        find = [str(TOP / ".ci" / "find_python.sh"), row.python]
        base = subprocess.run(find, check=True, capture_output=True, text=True)
        subprocess.run(
            [base.stdout.strip(), "-m", "venv", "--clear", folder], check=True
        )
        # pip would compile all of TensorFlow and its needs.
        flags = ("--quiet", "--disable-pip-version-check", "--no-compile")
        pip = [python, "-m", "pip", "install", *flags]
        subprocess.run([*pip, *row.packages], check=True, cwd=TOP)
        if row.alone:
            subprocess.run([*pip, "--no-deps", *row.alone], check=True)
        ready.touch()
    return python


def versions(python: str) -> list[str]:
    """The version of each package that the page shows."""
    code = (
        "import importlib\n"
        f"print(*(importlib.import_module(n).__version__ for n in {SHOWN!r}))"
    )
    out = subprocess.run(
        [python, "-c", code], check=True, capture_output=True, text=True
    )
    return out.stdout.split()


def write(row: Row, result: str) -> None:
    """Puts the row's result in the place of its last one."""
    text = PAGE.read_text(encoding="utf-8")
    old = re.compile(
        rf"^\| {re.escape(row.tensorflow)}[^|]* \| {row.python} \|.*$", re.M
    )
    if old.search(text):
        text = old.sub(lambda _: result, text)
    else:
        text = f"{text.rstrip()}\n{result}\n"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
