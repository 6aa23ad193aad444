"""The recorded scenarios on every host: sessions, callables, live sessions and `fit`.

What differs from the recording, and why, is in README.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import classification as c
import pytest
import tensorflow as tf
from fit_host import FitTrace, OwnTrace, in_fit
from scenarios import SCENARIOS
from trace_events import DIFFERENT_EVENTS, RECORDED, Event, comparable
from trace_hosts import CallableHost, LiveHost, SessionHost
from trace_loop import Trace

pytestmark = pytest.mark.slow
IN_FIT = [*c.SAME_IN_FIT, *c.DIFFERENT_IN_FIT]
OF_OWN = ("exception_in_op", *c.DIFFERENT_IN_FIT)
# `fit` has none of these, so the newest TensorFlow runs all of them.
ON_LIVE_SESSION = [
    *(
        pytest.param(name, marks=[pytest.mark.one_tensorflow] if number % 6 else [])
        for number, name in enumerate(c.SAME_IN_SESSION)
    ),
    *c.DIFFERENT_IN_SESSION,
]


def seen_in(trace: Trace, name: str) -> list[Event]:
    """The events of one scenario; `fit` has only some of them."""
    with trace.run():
        SCENARIOS[name](trace)
    return in_fit(trace.log) if isinstance(trace, FitTrace) else trace.log


def check(trace: Trace, name: str) -> None:
    """Compares a scenario with the recording, or with what is promised instead."""
    of_fit = isinstance(trace, FitTrace)
    different = c.DIFFERENT_IN_FIT if of_fit else c.DIFFERENT_IN_SESSION
    is_different = name in different
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


@pytest.mark.parametrize("name", c.with_sample(SCENARIOS))
def test_in_sessions(subtests: pytest.Subtests, name: str, tmp_path: Path) -> None:
    """Real sessions still do what was recorded; those of callables do the same."""
    callables = CallableHost()
    for host in (SessionHost(), callables):
        with subtests.test(str(host)):
            root = tmp_path / type(host).__name__
            root.mkdir()
            recorded, seen = comparable(
                RECORDED[name], seen_in(Trace(host, root), name)
            )
            assert seen == recorded, type(host)
    if any(event["e"] == "RAN" for event in RECORDED[name]):
        assert callables.calls > 0


@pytest.mark.parametrize("name", ON_LIVE_SESSION)
def test_on_a_live_session(name: str, live_host: Any, tmp_path: Path) -> None:
    check(Trace(live_host, tmp_path), name)


@pytest.mark.parametrize(
    ("keras", "name"),
    [
        *(("keras", name) for name in IN_FIT),
        # tf_keras has the source of Keras 2.15, which runs all of them beside TF 2.15.
        *(("tf_keras", name) for name in c.SAMPLE if c.IS_NEWEST),
    ],
    indirect=["keras"],
)
def test_in_fit(keras: Any, name: str, tmp_path: Path) -> None:
    check(FitTrace(keras, tmp_path), name)


@pytest.mark.parametrize("name", c.with_sample([*c.SAMPLE, *OF_OWN], *OF_OWN[:2]))
def test_in_a_loop_of_ones_own(name: str, tmp_path: Path) -> None:
    """It calls hooks as `fit` does, so a sample and one Keras are enough."""
    check(OwnTrace(tf.keras, tmp_path), name)


def test_recovery_differs_in_the_global_step_only() -> None:
    def without_steps(log: list[Event]) -> list[Event]:
        return [{k: v for k, v in e.items() if k != "gs"} for e in in_fit(log)]

    for name in (name for name in DIFFERENT_EVENTS if name.startswith("recover_")):
        ours = DIFFERENT_EVENTS[name]
        assert without_steps(ours) == without_steps(RECORDED[name])
        steps = [event["gs"] for event in ours if "gs" in event]
        assert steps == sorted(steps)


def test_every_recorded_scenario_is_in_one_row_and_runs() -> None:
    assert set(c.ROWS) == set(RECORDED) and len(RECORDED) == 111
    assert {row.kind for row in c.ROWS.values()} == {c.SAME, c.DIFFERENT, c.NO_MEANING}
    different = {*c.DIFFERENT_IN_FIT, *c.DIFFERENT_IN_SESSION}
    assert different == set(DIFFERENT_EVENTS)
    run = {*c.SAME_IN_FIT, *c.SAME_IN_SESSION, *different}
    assert {n for n in RECORDED if n not in run} == {
        n for n, row in c.ROWS.items() if row.kind == c.NO_MEANING
    }
    assert run <= set(SCENARIOS) and len(run - different) >= 85
