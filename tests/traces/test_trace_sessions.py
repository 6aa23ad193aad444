"""The recorded scenarios on live sessions, driven by TensorFlow's own loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import classification as c
import pytest
import tensorflow as tf
from live_host import LiveHost
from scenarios import SCENARIOS
from trace_events import DIFFERENT_EVENTS, RECORDED, Event, comparable
from trace_loop import Host, SessionHost, Trace

pytestmark = pytest.mark.slow


def run(host: Host, name: str, root: Path) -> list[Event]:
    """The events of one scenario."""
    trace = Trace(host, root)
    with trace.run():
        SCENARIOS[name](trace)
    return trace.log


@pytest.fixture(scope="module")
def live_host() -> Any:
    return LiveHost(tf.keras)


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario_is_the_recorded_one(name: str, tmp_path: Path) -> None:
    """Real sessions still do what was recorded, and our scenarios record it."""
    recorded, seen = comparable(RECORDED[name], run(SessionHost(), name, tmp_path))
    assert seen == recorded


@pytest.mark.parametrize("name", c.same_in_session())
def test_same_on_live_session(name: str, live_host: Any, tmp_path: Path) -> None:
    recorded, seen = comparable(RECORDED[name], run(live_host, name, tmp_path))
    assert seen == recorded


@pytest.mark.parametrize(
    "name", [n for n, d in c.DIFFERENCES.items() if d.where == "session"]
)
def test_different_on_live_session(name: str, live_host: Any, tmp_path: Path) -> None:
    promised, seen = comparable(DIFFERENT_EVENTS[name], run(live_host, name, tmp_path))
    assert seen == promised
    assert promised != comparable(RECORDED[name], [])[0]
