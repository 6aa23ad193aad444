"""The recorded scenarios on every host: sessions, callables, live sessions and `fit`.

What differs from the recording, and why, is in `classification.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import classification as c
import pytest
import tensorflow as tf
import trace_table
from callable_host import CallableHost
from fit_host import FitTrace, OwnTrace, in_fit
from live_host import LiveHost
from scenarios import SCENARIOS
from trace_events import DIFFERENT_EVENTS, RECORDED, Event, comparable
from trace_loop import SessionHost, Trace

pytestmark = pytest.mark.slow

# These scenarios list the private `_hooks`; under callables the last hook is ours.
LISTED = ("default_hooks_order", "worker_non_chief")
IN_FIT = [n for n, d in c.DIFFERENCES.items() if d.where == "fit"]
IN_SESSION = [n for n, d in c.DIFFERENCES.items() if d.where == "session"]


def seen_in(trace: Trace, name: str) -> list[Event]:
    """The events of one scenario; `fit` has only some of them."""
    with trace.run():
        SCENARIOS[name](trace)
    return in_fit(trace.log) if isinstance(trace, FitTrace) else trace.log


def check(trace: Trace, name: str) -> None:
    """Compares a scenario with the recording, or with what is promised instead."""
    of_fit = isinstance(trace, FitTrace)
    is_different = name in (IN_FIT if of_fit else IN_SESSION)
    expected, recorded = RECORDED[name], RECORDED[name]
    if is_different:
        expected = DIFFERENT_EVENTS[name]
    if of_fit:
        expected, recorded = in_fit(expected), in_fit(recorded)
    wanted, seen = comparable(expected, seen_in(trace, name))
    assert seen == wanted
    assert (wanted != comparable(recorded, [])[0]) == is_different


@pytest.fixture(scope="module")
def live_host() -> Any:
    return LiveHost(tf.keras)


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario_is_the_recorded_one(name: str, tmp_path: Path) -> None:
    """Real sessions still do what was recorded, and our scenarios record it."""
    seen = seen_in(Trace(SessionHost(), tmp_path), name)
    recorded, ours = comparable(RECORDED[name], seen)
    assert ours == recorded


@pytest.mark.parametrize("name", SCENARIOS)
def test_same_through_callables(name: str, tmp_path: Path) -> None:
    host = CallableHost()
    recorded, seen = comparable(RECORDED[name], seen_in(Trace(host, tmp_path), name))
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


@pytest.mark.parametrize("name", [*c.same_in_session(), *IN_SESSION])
def test_on_a_live_session(name: str, live_host: Any, tmp_path: Path) -> None:
    check(Trace(live_host, tmp_path), name)


@pytest.mark.parametrize("name", [*c.same_in_fit(), *IN_FIT])
def test_in_fit(name: str, keras: Any, tmp_path: Path) -> None:
    check(FitTrace(keras, tmp_path), name)


@pytest.mark.parametrize("name", [*c.same_in_fit(), *IN_FIT])
def test_in_a_loop_of_ones_own(name: str, tmp_path: Path) -> None:
    """It calls hooks as `fit` does, so one Keras is enough."""
    check(OwnTrace(tf.keras, tmp_path), name)


def test_recovery_differs_in_the_global_step_only() -> None:
    def without_steps(log: list[Event]) -> list[Event]:
        return [{k: v for k, v in e.items() if k != "gs"} for e in in_fit(log)]

    for name in (name for name in c.DIFFERENCES if name.startswith("recover_")):
        ours = DIFFERENT_EVENTS[name]
        assert without_steps(ours) == without_steps(RECORDED[name])
        steps = [event["gs"] for event in ours if "gs" in event]
        assert steps == sorted(steps)


def test_the_document_is_what_the_tests_classify() -> None:
    assert trace_table.PATH.read_text("utf-8") == trace_table.text(), (
        "run `python tests/traces/trace_table.py`"
    )


def test_every_recorded_scenario_is_in_one_class() -> None:
    named = [*c.MEANINGLESS, *c.DIFFERENCES, *c.SESSION_ONLY]
    assert len(named) == len(set(named))
    assert set(named) <= set(RECORDED)
    assert len(RECORDED) == 111
    assert len(c.with_verdict(c.SAME)) >= 85
    reasons = [*c.MEANINGLESS.values(), *c.SESSION_ONLY.values()]
    reasons += [difference.because for difference in c.DIFFERENCES.values()]
    assert all(len(reason) > 10 for reason in reasons)


def test_every_scenario_with_a_meaning_runs() -> None:
    run = {*c.same_in_fit(), *c.same_in_session(), *c.DIFFERENCES}
    assert run == set(RECORDED) - set(c.MEANINGLESS)
    assert run <= set(SCENARIOS)
