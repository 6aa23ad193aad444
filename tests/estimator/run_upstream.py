"""Runs the Estimator package's own test files against `hb.estimator`.

    git clone https://github.com/tensorflow/estimator CHECKOUT
    python tests/estimator/run_upstream.py CHECKOUT [--mode v1] [PATTERN ...]

Each file runs in a process of its own. Prints one line for each file and writes
the outcomes, test by test, as JSON, so that two TensorFlow versions can be
compared with `--compare`. The files stay outside this repository.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
from pathlib import Path
from typing import Any

PACKAGE = "tensorflow_estimator.python.estimator"
ROOT = Path(__file__).resolve().parents[2]
OUTCOMES = ("passed", "failed", "error", "skipped")


class _Recorder(unittest.TextTestResult):
    """A test result that keeps the outcome of every test."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.outcomes: dict[str, str] = {}
        self.reasons: dict[str, str] = {}
        self.out: Path

    def startTest(self, test: Any) -> None:
        super().startTest(test)
        # The outcome if the process hangs in this test and is killed.
        self.outcomes[test.id()] = "error"
        self.reasons[test.id()] = "did not end"
        self.write()
        del self.outcomes[test.id()], self.reasons[test.id()]

    def write(self) -> None:
        """Writes what is known, so that a hanging test does not lose the others."""
        outcomes = {
            # `test_session` is a helper of the base class that looks like a test.
            _short(key): value
            for key, value in self.outcomes.items()
            if not key.endswith(".test_session")
        }
        reasons = {_short(key): value for key, value in self.reasons.items()}
        self.out.write_text(json.dumps({"outcomes": outcomes, "reasons": reasons}))

    def _file(self, test: Any, outcome: str, reason: str = "") -> None:
        self.outcomes[test.id()] = outcome
        if reason:
            self.reasons[test.id()] = reason

    def addSuccess(self, test: Any) -> None:
        super().addSuccess(test)
        # If a sub-test has failed before, that outcome stays.
        self.outcomes.setdefault(test.id(), "passed")

    def addFailure(self, test: Any, err: Any) -> None:
        super().addFailure(test, err)
        self._file(test, "failed", str(err[1])[:2000])

    def addError(self, test: Any, err: Any) -> None:
        super().addError(test, err)
        self._file(test, "error", f"{type(err[1]).__name__}: {err[1]}"[:2000])

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._file(test, "failed", str(err[1])[:2000])

    def addSkip(self, test: Any, reason: str) -> None:
        super().addSkip(test, reason)
        self._file(test, "skipped", reason)


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
    module: types.ModuleType | None = None
    try:
        module = importlib.import_module(f"{PACKAGE}.{name}")
    except Exception as e:
        reason = f"{type(e).__name__}: {e}"
        out.write_text(
            json.dumps({"outcomes": {name: "error"}, "reasons": {name: reason}})
        )
        return
    _as_its_main_block(name, module)
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)

    def recorder(*args: Any) -> _Recorder:
        made = _Recorder(*args)
        made.out = out
        return made

    runner = unittest.TextTestRunner(io.StringIO(), verbosity=0, resultclass=recorder)
    result = runner.run(suite)
    assert isinstance(result, _Recorder)
    result.write()


def _short(test: str) -> str:
    """A test's name without the module of Keras, which differs between versions."""
    return test.removeprefix(f"{PACKAGE}.").replace("'tf_keras.", "'keras.")


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


def compare(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Lines: the counts of each file in both runs, and tests that only `old` passes."""
    lines = []
    for path in sorted({*old, *new}):
        a, b = (run.get(path, {"outcomes": {}}) for run in (old, new))
        counts = [
            " ".join(f"{n:4d}" for n in count(report).values()) for report in (a, b)
        ]
        lines.append(f"{path:62s} {counts[0]}   {counts[1]}")
        lines += [
            f"    lost: {test}: {b.get('reasons', {}).get(test, 'not run')[:300]}"
            for test, outcome in a["outcomes"].items()
            if outcome == "passed" and b["outcomes"].get(test) != "passed"
        ]
    return lines


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--mode", choices=("v2", "v1", "keras3"), default="v2")
    parser.add_argument("--timeout_secs", type=int, default=1500)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("OLD", "NEW"))
    arguments = parser.parse_args()
    if arguments.child:
        _child(arguments.checkout, arguments.child, arguments.mode, arguments.out)
        return
    if arguments.compare:
        old, new = (json.loads(path.read_text()) for path in arguments.compare)
        print("\n".join(compare(old, new)))
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
