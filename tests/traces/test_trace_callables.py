"""The recorded scenarios on sessions that run through callables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from callable_host import CallableHost
from scenarios import SCENARIOS
from trace_events import RECORDED, Event, comparable
from trace_loop import Trace

pytestmark = pytest.mark.slow

# These scenarios list the private `_hooks`; the last hook is ours.
LISTED = ("default_hooks_order", "worker_non_chief")


def run(host: CallableHost, name: str, root: Path) -> list[Event]:
    """The events of one scenario."""
    trace = Trace(host, root)
    with trace.run():
        SCENARIOS[name](trace)
    return trace.log


@pytest.mark.parametrize("name", SCENARIOS)
def test_same_through_callables(name: str, tmp_path: Path) -> None:
    host = CallableHost()
    recorded, seen = comparable(RECORDED[name], run(host, name, tmp_path))
    if name in LISTED:
        seen = [_without_last(line) for line in seen]
    assert seen == recorded
    if any(event["e"] == "RAN" for event in RECORDED[name]):
        assert host.calls > 0


def _without_last(line: str) -> str:
    event = json.loads(line)
    if event["e"] == "HOOKS":
        event["hooks"].pop()
    return json.dumps(event)
