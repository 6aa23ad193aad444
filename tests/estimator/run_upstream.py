"""Runs the Estimator package's own test files against `hb.estimator`.

    git clone https://github.com/tensorflow/estimator CHECKOUT
    python tests/estimator/run_upstream.py CHECKOUT [--mode v1] [PATTERN ...]

Each file runs in a process of its own. Prints one line for each file and writes
the outcomes, test by test, as JSON, to compare two TensorFlow versions. The files
stay outside this repository.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

import pytest

PACKAGE = "tensorflow_estimator.python.estimator"
ROOT = Path(__file__).resolve().parents[2]
OUTCOMES = ("passed", "failed", "error", "skipped")


class _Outcomes:
    """A plugin of pytest: writes the outcomes after each test, as one may hang."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._outcomes: dict[str, str] = {}
        self._reasons: dict[str, str] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        # `test_session` is a helper of the base class that looks like a test.
        items[:] = [item for item in items if item.name != "test_session"]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._file(nodeid, "error", "did not end")

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._file(report.nodeid, "error", report.longreprtext)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or not report.passed:
            broken = report.failed and report.when != "call"
            outcome = "error" if broken else report.outcome
            self._file(report.nodeid, outcome, report.longreprtext)

    def _file(self, test: str, outcome: str, reason: str) -> None:
        # Keras's module is named in a test's parameters, and differs between versions.
        test = test.replace("'tf_keras.", "'keras.")
        self._outcomes[test] = outcome
        self._reasons[test] = reason[-2000:]
        report = {"outcomes": self._outcomes, "reasons": self._reasons}
        self._out.write_text(json.dumps(report))


def _child(checkout: Path, name: str, mode: str, out: Path) -> None:
    """Runs one test file in this process and writes its outcomes."""
    sys.path.insert(0, str(ROOT))
    import inspect

    import tensorflow as tf
    from absl import flags

    import hookbridge as hb

    if not hasattr(inspect, "getargspec"):
        # One test still calls this function, which Python 3.11 removed.
        vars(inspect)["getargspec"] = inspect.getfullargspec

    if mode == "v1":
        tf.compat.v1.disable_v2_behavior()
    assert hb.estimator.v1.Estimator
    hb.estimator.install()
    flags.FLAGS([sys.argv[0], f"--test_tmpdir={tempfile.mkdtemp()}"])
    folder = checkout / PACKAGE.replace(".", "/")
    # Test modules and test helpers come from the checkout, everything else from the
    # installed package.
    for sub in ("", *(str(p.relative_to(folder)) for p in folder.rglob("*/"))):
        try:
            package = importlib.import_module(
                ".".join([PACKAGE, *sub.split("/")]).strip(".")
            )
        except ModuleNotFoundError:
            continue
        if hasattr(package, "__path__"):
            package.__path__ = [*package.__path__, str(folder / sub)]
    # The tests are newer than the last release, and take their Keras from `util`.
    util: Any = importlib.import_module(f"{PACKAGE}.util")
    if not hasattr(util, "tf_keras"):
        view: Any = util.tf
        util.tf_keras = view.keras
        util.tf_keras_v1 = view.compat.v1.keras
        util.tf_keras_v2 = view.compat.v2.keras
    try:
        _as_its_main_block(name, importlib.import_module(f"{PACKAGE}.{name}"))
    except Exception as e:
        reason = f"{type(e).__name__}: {e}"
        out.write_text(
            json.dumps({"outcomes": {name: "error"}, "reasons": {name: reason}})
        )
        return
    file = str(folder / f"{name.replace('.', '/')}.py")
    options = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={folder}"]
    pytest.main([*options, file], [_Outcomes(out)])


def _as_its_main_block(name: str, module: Any) -> None:
    """Does what a file does under `if __name__ == "__main__"`, and prevents hangs."""
    import tensorflow as tf

    if name == "distribute_strategy_estimator_training_test":
        # The file shortens the wait for other workers from 30 seconds.
        plain = tf.compat.v1.train.SessionManager.__init__

        def quick(*args: Any, **kwargs: Any) -> None:
            kwargs.pop("recovery_wait_secs", None)
            plain(*args, recovery_wait_secs=0.5, **kwargs)

        tf.compat.v1.train.SessionManager.__init__ = quick
        # Its five servers share this process. With one thread for each core they would
        # wait for one another without end on a small machine.
        server = tf.distribute.Server.__init__

        def roomy(self: Any, *args: Any, config: Any = None, **kwargs: Any) -> None:
            config = config or tf.compat.v1.ConfigProto()
            config.inter_op_parallelism_threads = 16
            server(self, *args, config=config, **kwargs)

        tf.distribute.Server.__init__ = roomy
        tests = module.DistributeCoordinatorIntegrationTest
        for test in [name for name in dir(tests) if "collective_nccl" in name]:
            # Without GPUs its workers wait for one another without end, on any version.
            setattr(tests, test, unittest.skip("needs GPUs")(getattr(tests, test)))


def run_file(checkout: Path, path: str, mode: str, timeout_secs: int) -> dict[str, Any]:
    """Runs one test file; returns outcomes, reasons and seconds."""
    name = path.removesuffix(".py").replace("/", ".")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        log = Path(folder) / "log"
        # Not for TensorFlow 2.15: it has its own Keras 2, and would look for tf_keras.
        plain = mode == "keras3" or importlib.util.find_spec("tf_keras") is None
        keras = {} if plain else {"TF_USE_LEGACY_KERAS": "1"}
        started = time.monotonic()
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [
                    *(sys.executable, __file__, str(checkout), "--mode", mode),
                    *("--child", name, "--out", str(out)),
                ],
                stdout=stream,
                stderr=subprocess.STDOUT,
                env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **keras}
                | {"TMPDIR": folder},
                start_new_session=True,
            )
            try:
                process.wait(timeout_secs)
                died = f"exit code {process.returncode}"
            except subprocess.TimeoutExpired:
                died = f"no end after {timeout_secs} s"
            finally:
                # Tests that start servers may leave processes behind.
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.wait()
        if out.exists():
            report: dict[str, Any] = json.loads(out.read_text())
        else:
            tail = log.read_text(errors="replace")[-2000:]
            report = {"outcomes": {name: "error"}, "reasons": {name: f"{died}: {tail}"}}
        report["secs"] = round(time.monotonic() - started, 1)
    return report


def count(report: dict[str, Any]) -> dict[str, int]:
    """How many tests had each outcome."""
    values = list(report["outcomes"].values())
    return {outcome: values.count(outcome) for outcome in OUTCOMES}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--mode", choices=("v2", "v1", "keras3"), default="v2")
    parser.add_argument("--timeout_secs", type=int, default=1500)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child")
    arguments = parser.parse_args()
    if arguments.child:
        _child(arguments.checkout, arguments.child, arguments.mode, arguments.out)
        return
    folder = arguments.checkout / PACKAGE.replace(".", "/")
    paths = sorted(
        str(path.relative_to(folder))
        for pattern in ("*_test.py", "*_test_v1.py", "*_test_v2.py", "*_fc_v*.py")
        for path in folder.rglob(pattern)
    )
    reports: dict[str, Any] = {}
    for path in dict.fromkeys(paths):
        if not any(fnmatch.fnmatch(path, pattern) for pattern in arguments.patterns):
            continue
        reports[path] = run_file(
            arguments.checkout, path, arguments.mode, arguments.timeout_secs
        )
        counts = " ".join(f"{n} {o}" for o, n in count(reports[path]).items() if n)
        print(f"{path:62s} {counts}  ({reports[path]['secs']} s)", flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps(reports, indent=1))


if __name__ == "__main__":
    main()
