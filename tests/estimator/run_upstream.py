"""Runs the Estimator package's own test files against `hb.estimator`.

    git clone https://github.com/tensorflow/estimator CHECKOUT
    python tests/estimator/run_upstream.py CHECKOUT [--mode v1] [PATTERN ...]

Each file runs in a process of its own. Its line has pytest's summary; what failed is in
`FILE.log` in the current folder. The files stay outside this repository.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import pytest

PACKAGE = "tensorflow_estimator.python.estimator"
ROOT = Path(__file__).resolve().parents[2]
TEST_SECS = 600


def _child(checkout: Path, name: str, mode: str) -> int:
    """Runs one test file in this process."""
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
    # A helper of the base class that looks like a test.
    vars(tf.test.TestCase.test_session)["__test__"] = False
    assert hb.estimator.v1.Estimator
    hb.estimator.install()
    flags.FLAGS([sys.argv[0], f"--test_tmpdir={tempfile.mkdtemp()}"])
    folder = checkout / PACKAGE.replace(".", "/")
    # Test modules and test helpers come from the checkout, everything else from the
    # installed package.
    for sub in ("", *(str(p.relative_to(folder)) for p in folder.rglob("*/"))):
        place = ".".join([PACKAGE, *sub.split("/")]).strip(".")
        with contextlib.suppress(ModuleNotFoundError):
            package = importlib.import_module(place)
            if hasattr(package, "__path__"):
                package.__path__ = [*package.__path__, str(folder / sub)]
    # The tests are newer than the last release, and take their Keras from `util`.
    util: Any = importlib.import_module(f"{PACKAGE}.util")
    if not hasattr(util, "tf_keras"):
        view: Any = util.tf
        util.tf_keras = view.keras
        util.tf_keras_v1 = view.compat.v1.keras
        util.tf_keras_v2 = view.compat.v2.keras
    if name == "distribute_strategy_estimator_training_test.py":
        _prevent_hangs(importlib.import_module(f"{PACKAGE}.{Path(name).stem}"))
    options = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={folder}"]
    return int(pytest.main([*options, f"--timeout={TEST_SECS}", str(folder / name)]))


def _prevent_hangs(module: Any) -> None:
    """Does what the file does under `if __name__ == "__main__"`, and a little more."""
    import tensorflow as tf

    # The file shortens the wait for other workers from 30 seconds.
    plain = tf.compat.v1.train.SessionManager.__init__

    def quick(*args: Any, **kwargs: Any) -> None:
        plain(*args, **{**kwargs, "recovery_wait_secs": 0.5})

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


def run_file(checkout: Path, name: str, mode: str) -> str:
    """Runs one test file; returns the last line of its log."""
    # Not for TensorFlow 2.15: it has its own Keras 2, and would look for tf_keras.
    plain = mode == "keras3" or importlib.util.find_spec("tf_keras") is None
    keras = {} if plain else {"TF_USE_LEGACY_KERAS": "1"}
    log = Path(name.replace("/", ".")).with_suffix(".log")
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, __file__, str(checkout), "--mode", mode, "--child", name],
            stdout=stream,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **keras},
            start_new_session=True,
        )
        process.wait()
    # Tests that start servers may leave processes behind.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return (log.read_text(errors="replace").strip().splitlines() or ["no output"])[-1]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--mode", choices=("v2", "v1", "keras3"), default="v2")
    parser.add_argument("--child")
    arguments = parser.parse_args()
    checkout: Path = arguments.checkout.resolve()
    if arguments.child:
        sys.exit(_child(checkout, arguments.child, arguments.mode))
    folder = checkout / PACKAGE.replace(".", "/")
    ends = ("*_test.py", "*_test_v1.py", "*_test_v2.py", "*_fc_v*.py")
    for path in sorted({p for end in ends for p in folder.rglob(end)}):
        name = path.relative_to(folder).as_posix()
        if any(fnmatch.fnmatch(name, pattern) for pattern in arguments.patterns):
            print(f"{name:62s} {run_file(checkout, name, arguments.mode)}", flush=True)


if __name__ == "__main__":
    main()
