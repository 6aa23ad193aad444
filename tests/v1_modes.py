"""Runs the tests of `v1_mode` in processes that have switched v2 behaviour off.

Switching it off cannot be undone, so each mode has a process of its own, which runs all
chosen tests. In this process, each test only reports its result from there.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from fork_server import ForkServer

import hookbridge.ground.compat

MODES = ("disable_v2_behavior", "disable_eager_execution")
MODE = os.environ.get("HOOKBRIDGE_TEST_V1_MODE")
HERE = Path(__file__).parent / "v1_mode"
LIMIT_SECS = 900
RESULTS: dict[str, tuple[str, str]] = {}

if MODE is not None:
    import tensorflow as tf

    getattr(tf.compat.v1, MODE)()


def _is_here(path: Path) -> bool:
    return HERE in path.parents


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if not _is_here(metafunc.definition.path):
        return
    metafunc.fixturenames.append("v1_mode")
    marker = metafunc.definition.get_closest_marker("v1_mode")
    modes = MODES if marker is None else marker.args
    # The first mode does what the second does, and more: all tests of the second need
    # `--all`, but those that are of it alone.
    marks = {MODES[1]: [pytest.mark.one_tensorflow]}
    if len(modes) > 1:
        marks[MODES[1]].append(pytest.mark.exhaustive)
    metafunc.parametrize(
        "v1_mode",
        [
            pytest.param(mode, marks=marks.get(mode, []))
            for mode in modes
            if MODE in (None, mode)
        ],
    )


@pytest.hookimpl(tryfirst=True)  # `--fast` has to see the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _is_here(item.path):
            assert isinstance(item, pytest.Function)
            if MODE is None and "fork_server" not in item.fixturenames:
                item.fixturenames.append("fork_server")
            # The first test of a mode waits for all tests of that mode, each of which
            # has a limit in its process.
            item.add_marker(pytest.mark.timeout(0 if MODE is None else LIMIT_SECS))
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def fresh_graph() -> None:
    """Each test has its own default graph and its own session of Keras."""
    if MODE is not None:
        for flavour in hookbridge.ground.compat.keras_flavours():
            flavour.backend.clear_session()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> bool | None:
    if MODE is not None or not _is_here(pyfuncitem.path):
        return None
    mode = pyfuncitem.callspec.params["v1_mode"]
    if pyfuncitem.nodeid not in RESULTS:
        _run_mode(mode, pyfuncitem.session, pyfuncitem.funcargs["fork_server"])
    outcome, text = RESULTS[pyfuncitem.nodeid]
    if outcome == "skipped":
        pytest.skip(text)
    if outcome != "passed":
        pytest.fail(text, pytrace=False)
    return True


def _run_mode(mode: str, session: Any, fork_server: ForkServer) -> None:
    names = [
        item.nodeid
        for item in session.items
        if _is_here(item.path) and item.callspec.params["v1_mode"] == mode
    ]
    run = fork_server.run(
        # All of these names were chosen already.
        *("-m", "pytest", "-q", "--all", "-p", "no:cacheprovider", *names),
        folder=session.config.rootpath,
        HOOKBRIDGE_TEST_V1_MODE=mode,
    )
    lines = [line for line in run.stdout.splitlines() if line.startswith("RESULT ")]
    for line in lines:
        name, outcome, text = json.loads(line.removeprefix("RESULT "))
        RESULTS[name] = (outcome, text)
    for name in names:
        RESULTS.setdefault(name, ("failed", f"{run.stdout}\n{run.stderr}"))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if MODE is not None and (report.when == "call" or not report.passed):
        text = report.longreprtext
        if report.skipped and isinstance(report.longrepr, tuple):
            text = str(report.longrepr[2])
        RESULTS[report.nodeid] = (report.outcome, text)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if MODE is not None:
        for name, (outcome, text) in RESULTS.items():
            line = json.dumps([name, outcome, text])
            terminalreporter.write_line(f"RESULT {line}")
