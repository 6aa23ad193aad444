"""Runs the Estimator package's own test files against `hb.estimator`.

    git clone https://github.com/tensorflow/estimator CHECKOUT
    python tests/estimator/run_upstream.py CHECKOUT [--mode v1] [PATTERN ...]

Each file runs in a process of its own. Prints one line for each file, and the tests
that failed, to compare two TensorFlow versions. The files stay outside this repository.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import importlib
import importlib.util
import inspect
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

PACKAGE = "tensorflow_estimator.python.estimator"
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "proof")]

from outcomes import read  # noqa: E402


def run_here(folder: Path, path: str, mode: str, report: Path) -> None:
    """Runs one test file in this process, and writes its outcomes."""
    import tensorflow as tf
    from absl import flags

    import hookbridge as hb

    if not hasattr(inspect, "getargspec"):
        # One test still calls this function, which Python 3.11 removed.
        vars(inspect)["getargspec"] = inspect.getfullargspec
    if mode == "v1":
        tf.compat.v1.disable_v2_behavior()
    hb.estimator.install()
    flags.FLAGS([sys.argv[0], f"--test_tmpdir={tempfile.mkdtemp()}"])
    # Test modules and test helpers come from the checkout, everything else from the
    # installed package.
    for sub in (folder, *folder.rglob("*/")):
        words = [PACKAGE, *sub.relative_to(folder).parts]
        try:
            package = importlib.import_module(".".join(words))
        except ModuleNotFoundError:
            continue
        if hasattr(package, "__path__"):
            package.__path__ = [*package.__path__, str(sub)]
    # The tests are newer than the last release, and take their Keras from `util`.
    util: Any = importlib.import_module(f"{PACKAGE}.util")
    if not hasattr(util, "tf_keras"):
        view: Any = util.tf
        util.tf_keras = view.keras
        util.tf_keras_v1 = view.compat.v1.keras
        util.tf_keras_v2 = view.compat.v2.keras
    options = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={folder}"]
    pytest.main([*options, f"--junitxml={report}", str(folder / path)])


def run_file(path: str, mode: str, timeout_secs: int) -> dict[str, str]:
    """Runs one test file in a process: test -> outcome."""
    # Not for TensorFlow 2.15: it has its own Keras 2, and would look for tf_keras.
    plain = mode == "keras3" or importlib.util.find_spec("tf_keras") is None
    keras = {} if plain else {"TF_USE_LEGACY_KERAS": "1"}
    with tempfile.TemporaryDirectory() as temporary:
        report = Path(temporary, "outcomes.xml")
        try:
            done = subprocess.run(
                [sys.executable, *sys.argv, f"--file={path}", f"--report={report}"],
                env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TMPDIR": temporary}
                | keras,
                capture_output=True,
                text=True,
                timeout=timeout_secs,
            )
        except subprocess.TimeoutExpired:
            return {f"no end after {timeout_secs} s": "failed"}
        if not report.exists():
            return {(done.stdout + done.stderr)[-2000:]: "failed"}
        return read(report)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--mode", choices=("v2", "v1", "keras3"), default="v2")
    parser.add_argument("--timeout_secs", type=int, default=1500)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    parser.add_argument("--report", type=Path, help=argparse.SUPPRESS)
    values = parser.parse_args()
    folder = values.checkout / PACKAGE.replace(".", "/")
    if values.file:
        run_here(folder, values.file, values.mode, values.report)
        return
    paths = {
        str(path.relative_to(folder))
        for pattern in ("*_test.py", "*_test_v1.py", "*_test_v2.py", "*_fc_v*.py")
        for path in folder.rglob(pattern)
    }
    for path in sorted(paths):
        if any(fnmatch.fnmatch(path, pattern) for pattern in values.patterns):
            found = run_file(path, values.mode, values.timeout_secs)
            counts = collections.Counter(found.values())
            print(path, *(f"{n} {kind}" for kind, n in sorted(counts.items())))
            for name in sorted(name for name in found if found[name] == "failed"):
                print(f"  failed: {name}", flush=True)


if __name__ == "__main__":
    main()
