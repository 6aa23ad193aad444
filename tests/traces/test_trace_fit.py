"""The recorded scenarios in `Model.fit` and in a loop of the user's own.

A batch is a run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import classification as c
import pytest
from fit_host import FitTrace, OwnTrace, in_fit
from scenarios import SCENARIOS
from trace_events import DIFFERENT_EVENTS, RECORDED, Event, comparable

pytestmark = pytest.mark.slow


HOSTS = pytest.mark.parametrize("host", [FitTrace, OwnTrace])


def run(host: type[FitTrace], keras: Any, name: str, root: Path) -> list[Event]:
    """The events of one scenario that `fit` has too."""
    trace = host(keras, root)
    with trace.run():
        SCENARIOS[name](trace)
    return in_fit(trace.log)


@HOSTS
@pytest.mark.parametrize("name", c.same_in_fit())
def test_same_in_fit(
    name: str, host: type[FitTrace], keras: Any, tmp_path: Path
) -> None:
    recorded, seen = comparable(
        in_fit(RECORDED[name]), run(host, keras, name, tmp_path)
    )
    assert seen == recorded


@HOSTS
@pytest.mark.parametrize(
    "name", [n for n, d in c.DIFFERENCES.items() if d.where == "fit"]
)
def test_different_in_fit(
    name: str, host: type[FitTrace], keras: Any, tmp_path: Path
) -> None:
    promised, seen = comparable(
        in_fit(DIFFERENT_EVENTS[name]), run(host, keras, name, tmp_path)
    )
    assert seen == promised
    assert promised != comparable(in_fit(RECORDED[name]), [])[0]


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
