"""The rows of the tables that `bridge_overhead.py` prints."""

from __future__ import annotations

import statistics

from benchmarks import base

COUNTS = (0, 1, 10)
LOOPS = ("MonitoredTrainingSession", "training_session")


def rows_of(
    timings: dict[str, base.Timing], native: str, bridged: str
) -> list[list[str]]:
    """A row for each number of guests: native, bridged and their ratio."""
    rows = []
    for count in COUNTS:
        own, other = timings[f"{count} {native}"], timings[f"{count} {bridged}"]
        rows.append(
            [
                str(count),
                f"{own.microsecs:.0f}",
                f"{other.microsecs:.0f}",
                f"{other.ratio_to(own):.2f}",
            ]
        )
    return rows


def loop_rows(timings: dict[str, base.Timing]) -> list[list[str]]:
    """A row for each number of hooks: both session loops and their ratio."""
    rows = []
    for count in COUNTS:
        theirs, ours = (timings[f"{count} in {loop}"] for loop in LOOPS)
        ratio = f"{ours.ratio_to(theirs):.2f}"
        rows.append(
            [str(count), f"{theirs.microsecs:.0f}", f"{ours.microsecs:.0f}", ratio]
        )
    return rows


def overhead_rows(timings: dict[str, base.Timing]) -> list[list[str]]:
    """A row for each number of hooks: microseconds over the floor, in both loops."""
    floor = timings["Session.make_callable"]
    rows = []
    for count in COUNTS:
        native = timings[f"{count} in MonitoredTrainingSession"].over(floor)
        own = timings[f"{count} in training_session"].over(floor)
        ratios = [a / b for a, b in zip(native, own, strict=True)]
        medians = [statistics.median(values) for values in (native, own, ratios)]
        rows.append([str(count), *(f"{m:.0f}" for m in medians[:2])])
        rows[-1].append(f"{medians[2]:.1f}")
    return rows
