"""The moments that events are sorted into, and the picture of odd runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from hookbridge.demo.guests import DemoGuest
from hookbridge.demo.loop_run import LoopRun
from hookbridge.demo.timeline_slots import Moment, columns, count_moments
from hookbridge.demo.timeline_svg import timeline_svg
from hookbridge.lifecycle import Guest, Host, expected_events
from hookbridge.testing import EventLog, RecordingCallback, RecordingHook


def run(host: Host, *, steps: int, steps_per_epoch: int) -> LoopRun:
    """A run in which one hook and one callback got what is documented."""
    log = EventLog()
    guests = [
        DemoGuest("hook", RecordingHook(log)),
        DemoGuest("callback", RecordingCallback(log)),
    ]
    facts: dict[str, Any] = {
        "steps": steps,
        "steps_per_epoch": steps_per_epoch,
        "validation_batches": 3,
    }
    kinds: tuple[Guest, ...] = ("hook", "callback")
    for kind in kinds:
        for event, number in expected_events(kind, host, **facts):
            log.add(kind, event, number)
    epochs = range(-(-steps // steps_per_epoch))
    return LoopRun(
        host=host,
        log=log,
        guests=guests,
        steps=steps,
        steps_per_epoch=steps_per_epoch,
        validation_batches=3,
        test_accuracy=0.5,
        test_loss=1.0,
        seconds=1.0,
        history=[{"val_loss": 1 / (e + 1), "learning_rate": 0.1} for e in epochs],
        activity={},
        directory=Path(),
    )


@pytest.mark.parametrize("steps", [1, 2, 4, 5, 8, 10, 12])
@pytest.mark.parametrize("steps_per_epoch", [1, 2, 3, 4])
def test_every_event_has_a_column(steps: int, steps_per_epoch: int) -> None:
    found = run("session", steps=steps, steps_per_epoch=steps_per_epoch)
    known = {column.moment for column in columns([found])}
    for guest in ("hook", "callback"):
        counts = count_moments(found, guest)
        assert sum(counts.values()) == len(found.log.of(guest))
        assert set(counts) <= known


def test_events_fall_into_their_moments() -> None:
    counts = count_moments(run("fit", steps=30, steps_per_epoch=10), "callback")
    assert counts[Moment("start", "set_up")] == 2
    assert counts[Moment("first", "before", "1")] == 1
    assert counts[Moment("first", "between")] == 2 * (10 - 3)
    assert counts[Moment("first", "validation")] == 2 + 2 * 3
    assert counts[Moment("middle", "")] == 2 * 10 + 2 + 2 + 2 * 3
    assert counts[Moment("last", "after", "last")] == 1
    assert counts[Moment("end", "end")] == 1


@pytest.mark.parametrize("steps", [1, 7, 40])
def test_the_picture_of_unequal_runs_is_well_formed(steps: int) -> None:
    runs: dict[Host, LoopRun] = {
        "session": run("session", steps=steps, steps_per_epoch=4),
        "fit": run("fit", steps=2 * steps, steps_per_epoch=4),
    }
    root = ElementTree.fromstring(timeline_svg(runs))
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    dots = list(root.iter("{http://www.w3.org/2000/svg}circle"))
    assert len(dots) > 10
    for dot in dots:
        assert 0 < float(dot.get("cx", -1)) < width
        assert 0 < float(dot.get("cy", -1)) < height
