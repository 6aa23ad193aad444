"""Fixtures shared by all tests: Keras flavours, fresh state, quiet logs."""

from __future__ import annotations

import os

# Set before any import of TensorFlow: its start-up lines would hide failures.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import contextlib
import gc
import importlib
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fork_server import ForkServer, fork_servers
from idle_clock import idle_secs
from tiers import FLAVOURS, is_worker, of_module

from hookbridge.ground import memory
from hookbridge.ground.compat import is_keras3

pytest_plugins = [
    "files_to_workers",
    "real_references",
    "side_by_side",
    "tiers",
    "v1_modes",
    "hookbridge.pytest_plugin",
]
ROOT = Path(__file__).resolve().parent.parent
# Marks every process of this test run: children inherit it.
RUN_MARK = "HOOKBRIDGE_TEST_RUN"
# The folder of the fork servers of this test run, which all its workers use.
FORK_SERVERS = "HOOKBRIDGE_TEST_FORK_SERVERS"
SERVERS = pytest.StashKey[contextlib.ExitStack]()
FAILS_FAST = "GRPC_FAIL_FAST" in os.environ
# How long processes may take to end: by the idle clock, and by the real clock.
LEAVE_IDLE_SECS, LEAVE_SECS = 10.0, 300.0
# Less than a minute: `_no_old_iterators` says why.
COLLECT_ALL_SECS = 20.0


def pytest_configure(config: pytest.Config) -> None:
    """Gives the run its mark and its fork servers, which its workers inherit."""
    if is_worker(config):
        return
    os.environ[RUN_MARK] = str(uuid.uuid4())
    servers = config.stash[SERVERS] = contextlib.ExitStack()
    if FORK_SERVERS not in os.environ:  # a test may run pytest
        os.environ[FORK_SERVERS] = servers.enter_context(fork_servers())


@pytest.fixture(params=FLAVOURS)
def keras(request: pytest.FixtureRequest) -> Any:
    """Each Keras of this environment in turn: Keras 2.15, or Keras 3 and tf_keras."""
    return importlib.import_module(request.param)


@pytest.fixture
def keras2() -> Any:
    """The Keras 2 of this environment: `tf.keras` on TF 2.15, else tf_keras."""
    return importlib.import_module(FLAVOURS[-1])


@pytest.fixture
def keras3() -> Any:
    """The Keras 3 of this environment; a test that takes it is skipped without one."""
    if len(FLAVOURS) == 1:
        pytest.skip("TF 2.15 has Keras 2 only")
    return importlib.import_module("keras")


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the working directory during the test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _needs_tensorflow(items: list[pytest.Item]) -> bool:
    return not all(of_module(item, "ONE_TENSORFLOW") for item in items)


@pytest.fixture(scope="session", autouse=True)
def _prepared_tensorflow(request: pytest.FixtureRequest) -> Iterator[None]:
    """TensorFlow with two logical CPUs for `MirroredStrategy`, and without waits.

    Tests in which TensorFlow plays no part run without it. Each trace of a replica
    would wait for a second, and `clear_session` throw away the kernels of eager ops.
    """
    if not _needs_tensorflow(request.session.items):
        yield
        return
    import tensorflow as tf
    from quick_traces import look_often

    (cpu, *_) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    look_often()
    context: Any = importlib.import_module("tensorflow.python.eager.context")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(context.Context, "clear_kernel_cache", lambda self: None)
        yield


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    """Nothing that hookbridge remembers passes to the next test."""
    yield
    memory.forget()


def collect_new() -> None:
    """Collects garbage among the objects made since the last collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_old_iterators(_prepared_tensorflow: None) -> Iterator[None]:
    """Iterators of `tf.data` end with their test, not at some later collection.

    When an iterator ends, the thread that tunes it misses the wake-up and sleeps on:
    for milliseconds if the iterator is young, for up to 60 s if it is a minute old.
    The thread that drops the last reference waits for it and holds Python's lock
    meanwhile (plain TensorFlow, 2.15 to 2.21).
    """
    yield
    # Old objects are mostly caches of libraries: checking them after each test would
    # take longer than the tests.
    collect_new()


@pytest.fixture(scope="session", autouse=True)
def _old_objects(_prepared_tensorflow: None) -> dict[str, float]:
    """When all objects were checked last; what imports have made is not checked."""
    collect_new()
    return {"checked": time.monotonic()}


@pytest.fixture(scope="module", autouse=True)
def _looked_at_once_more(_old_objects: dict[str, float]) -> Iterator[None]:
    """Iterators that outlive their test are collected before they are old."""
    yield
    if time.monotonic() - _old_objects["checked"] > COLLECT_ALL_SECS:
        gc.unfreeze()
        collect_new()
        _old_objects["checked"] = time.monotonic()


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def fork_server() -> ForkServer:
    """Starts processes that have imported TensorFlow; they all end with the tests."""
    return ForkServer(os.path.join(os.environ[FORK_SERVERS], "tensorflow"))


@pytest.fixture(scope="session")
def launcher() -> ForkServer:
    """The same for programs that import TensorFlow, with Keras 2, themselves."""
    return ForkServer(os.path.join(os.environ[FORK_SERVERS], "keras2_aside"))


@pytest.fixture(scope="session")
def bare_launcher() -> ForkServer:
    """The same for programs that get another Keras, or hold TensorFlow off."""
    return ForkServer(os.path.join(os.environ[FORK_SERVERS], "needs"))


@pytest.fixture
def graph() -> Iterator[Any]:
    """A fresh v1 graph, the default graph during the test."""
    import tensorflow as tf

    with tf.Graph().as_default() as fresh:
        yield fresh


@pytest.fixture
def absl_records(caplog: pytest.LogCaptureFixture) -> Any:
    """`absl_records(text)` gives the records of absl's logger that contain the text."""
    from absl import logging

    logging.get_absl_logger().addHandler(caplog.handler)
    # A record comes twice where absl's logger also hands it on.
    yield lambda text: [
        r for r in dict.fromkeys(caplog.records) if text in r.getMessage()
    ]
    logging.get_absl_logger().removeHandler(caplog.handler)


@pytest.fixture(autouse=True)
def _patient_calls() -> Iterator[None]:
    """Removes `GRPC_FAIL_FAST` if a test has set it.

    `SessionCluster` sets it in the environment of its process. Processes that a later
    test starts would inherit it, and their calls to a task that is slow to start would
    fail at once.
    """
    yield
    if not FAILS_FAST:
        os.environ.pop("GRPC_FAIL_FAST", None)


@pytest.fixture(autouse=True)
def _clean_keras() -> Iterator[None]:
    """No Keras graph state, names or default graph leaks into the next test."""
    import sys

    yield
    for name in ("keras", "tf_keras"):
        module: Any = sys.modules.get(name)
        clear = getattr(getattr(module, "backend", None), "clear_session", None)
        if clear is not None and is_keras3(module):
            clear(free_memory=False)  # `_no_old_iterators` collects garbage
        elif clear is not None:
            clear()


def processes_left() -> dict[int, str]:
    """The other processes of this test run: `{pid: command line}`."""
    found = {}
    mark = f"{RUN_MARK}={os.environ[RUN_MARK]}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # it has ended, or belongs to another user
        is_ours = mark in environment and int(folder.name) != os.getpid()
        # Python's own helper ends with the process that it helps.
        if is_ours and command and "resource_tracker" not in command:
            found[int(folder.name)] = command.strip()
    return found


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails the run if a test left a process behind.

    That no test ran is fine on TF 2.15: those chosen may need a later one.
    """
    if is_worker(session.config):
        return
    session.config.stash[SERVERS].close()
    none_ran = session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
    if none_ran and len(FLAVOURS) == 1:
        session.exitstatus = pytest.ExitCode.OK
    began, idle = time.monotonic(), idle_secs()
    while (left := processes_left()) and (
        idle_secs() - idle < LEAVE_IDLE_SECS and time.monotonic() - began < LEAVE_SECS
    ):
        time.sleep(0.2)
    if left:
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            for pid, command in left.items():
                reporter.write_line(f"FAILED process {pid} was left: {command[:200]}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
