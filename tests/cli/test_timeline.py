"""The moments that events are sorted into, and the picture of odd runs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from hookbridge.demo.guests import DemoGuest
from hookbridge.demo.loop_run import LoopRun
from hookbridge.demo.strict_json import to_json
from hookbridge.demo.timeline_slots import Moment, columns, count_moments
from hookbridge.demo.timeline_svg import timeline_svg
from hookbridge.lifecycle import Guest, Host, expected_events
from hookbridge.testing import EventLog, RecordingCallback, RecordingHook


def run(
    host: Host, *, steps: int, steps_per_epoch: int, losses: list[float] | None = None
) -> LoopRun:
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
    if losses is None:
        losses = [1 / (e + 1) for e in range(-(-steps // steps_per_epoch))]
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
        history=[{"val_loss": loss, "learning_rate": 0.1} for loss in losses],
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


@pytest.mark.parametrize(
    ("losses", "lines"),
    [
        ([0.5, math.nan, 0.4], [1, 1]),
        ([math.inf, 0.5, 0.4], [2]),
        ([0.5, 0.4, -math.inf], [2]),
        ([math.nan, math.nan, math.nan], []),
        ([0.0, 0.0, 0.0], [3]),
        ([3e38, 1e-45, 1.0], [3]),
        ([], []),
    ],
)
def test_the_picture_of_a_run_that_diverged(
    losses: list[float], lines: list[int]
) -> None:
    runs: dict[Host, LoopRun] = {
        host: run(host, steps=3, steps_per_epoch=1, losses=losses)
        for host in ("session", "fit")
    }
    picture = timeline_svg(runs)
    assert "nan" not in picture and "inf" not in picture
    drawn = ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}polyline")
    points = [(line.get("points") or "").split() for line in drawn]
    assert [len(each) for each in points] == 2 * lines
    height = [float(point.partition(",")[2]) for line in points for point in line]
    assert all(118 <= y <= 118 + 150 for y in height)


def test_a_report_is_json_whatever_the_losses_are() -> None:
    text = to_json({"loss": math.nan, "history": [{"val_loss": math.inf}, 1.5, 2]})
    assert json.loads(text) == {"loss": None, "history": [{"val_loss": None}, 1.5, 2]}
    assert "NaN" not in text and "Infinity" not in text
