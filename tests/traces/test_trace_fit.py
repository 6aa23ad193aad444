"""The recorded scenarios in `Model.fit` and in a loop of the user's own.

A batch is a run.
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

pytestmark = pytest.mark.slow


def run(host: type[FitTrace], keras: Any, name: str, root: Path) -> list[Event]:
    """The events of one scenario that `fit` has too."""
    trace = host(keras, root)
    with trace.run():
        SCENARIOS[name](trace)
    return in_fit(trace.log)


DIFFERENT = [n for n, d in c.DIFFERENCES.items() if d.where == "fit"]


@pytest.mark.parametrize("name", c.same_in_fit())
def test_same_in_fit(name: str, keras: Any, tmp_path: Path) -> None:
    recorded, seen = comparable(
        in_fit(RECORDED[name]), run(FitTrace, keras, name, tmp_path)
    )
    assert seen == recorded


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_in_fit(name: str, keras: Any, tmp_path: Path) -> None:
    promised, seen = comparable(
        in_fit(DIFFERENT_EVENTS[name]), run(FitTrace, keras, name, tmp_path)
    )
    assert seen == promised
    assert promised != comparable(in_fit(RECORDED[name]), [])[0]


@pytest.mark.parametrize("name", [*c.same_in_fit(), *DIFFERENT])
def test_in_a_loop_of_ones_own(name: str, tmp_path: Path) -> None:
    """It calls hooks as `fit` does, so one Keras is enough."""
    events = DIFFERENT_EVENTS if name in DIFFERENT else RECORDED
    expected, seen = comparable(
        in_fit(events[name]), run(OwnTrace, tf.keras, name, tmp_path)
    )
    assert seen == expected


@pytest.mark.parametrize(
    "name", [n for n, d in c.DIFFERENCES.items() if n.startswith("recover_")]
)
def test_recovery_differs_in_the_global_step_only(name: str) -> None:
    def without_steps(log: list[Event]) -> list[Event]:
        return [{k: v for k, v in event.items() if k != "gs"} for event in log]

    ours = without_steps(in_fit(DIFFERENT_EVENTS[name]))
    assert ours == without_steps(in_fit(RECORDED[name]))
    steps = [event["gs"] for event in DIFFERENT_EVENTS[name] if "gs" in event]
    assert steps == sorted(steps)
