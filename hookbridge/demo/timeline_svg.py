"""The picture: how both runs went, and every guest's events lined up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import groupby, pairwise

from hookbridge.demo.loop_run import TITLES, LoopRun
from hookbridge.demo.svg import Drawing
from hookbridge.demo.timeline_slots import Column, columns, count_moments
from hookbridge.lifecycle import Host

LEFT = 196  # right end of the guests' names
COLUMN = 48
ROW = 40
CURVE_TOP, CURVE_HEIGHT = 118, 150
GRID_TOP = 448
PARTS = {
    "start": "start",
    "first": "epoch 1",
    "middle": "",
    "last": "last epoch",
    "end": "end",
}


def timeline_svg(runs: Mapping[Host, LoopRun]) -> str:
    """Draws the runs.

    The upper part shows the validation loss by training step, with the steps at
    which the learning rate was cut and training stopped. The lower part has one
    row for each guest and one column for each moment; a dot is one event.

    Args:
      runs: the runs by host.

    Returns:
      An SVG document.
    """
    listed = list(runs.values())
    grid = columns(listed)
    guests = listed[0].guests
    width = LEFT + 24 + COLUMN * len(grid) + 48
    height = GRID_TOP + ROW * len(guests) + 44
    summary = "; ".join(
        f"{TITLES[run.host]}: {run.steps} steps, {run.test_accuracy:.1%} test accuracy"
        for run in listed
    )
    drawing = Drawing(
        width,
        height,
        title="One list of guests in two training loops",
        description=(
            f"{summary}. Validation loss by step, and for each of {len(guests)} "
            "guests the events it received in either loop, lined up."
        ),
    )
    drawing.text(24, 38, "One list of guests, two training loops", "title")
    for i, run in enumerate(listed):
        y = 60 + 20 * i
        drawing.circle(30, y - 4, 5, run.host, TITLES[run.host])
        drawing.text(
            42,
            y,
            f"{TITLES[run.host]}: {run.steps} steps, test accuracy "
            f"{run.test_accuracy:.2%}, {run.seconds:.1f} s",
        )
    _curves(drawing, listed, width)
    _header(drawing, grid, len(guests))
    for i in range(len(guests)):
        _row(drawing, listed, grid, i)
    return drawing.to_string()


def _curves(drawing: Drawing, runs: list[LoopRun], width: int) -> None:
    left, right = 76, width - 48
    bottom = CURVE_TOP + CURVE_HEIGHT
    last = max(run.steps for run in runs)
    low, high = _loss_range(runs)
    drawing.text(24, CURVE_TOP - 8, "Validation loss by training step", "heading")

    def at(step: float, loss: float) -> tuple[float, float]:
        # What is no number is marked at the upper edge.
        loss = min(max(loss, low), high) if math.isfinite(loss) else high
        share = math.log(loss / low) / math.log(high / low)
        return left + (right - left) * step / last, bottom - CURVE_HEIGHT * share

    drawing.line(left, bottom, right, bottom, "rule")
    for loss in _decimal_ticks(low, high):
        x, y = at(0, loss)
        drawing.line(x - 4, y, right, y, "rule")
        drawing.text(x - 8, y + 4, f"{loss:g}", "muted small", anchor="end")
    for step in _ticks(last):
        x, _ = at(step, low)
        drawing.line(x, bottom, x, bottom + 4, "rule")
        drawing.text(x, bottom + 17, str(step), "muted small", anchor="middle")
    for run in runs:
        # A diverged run has epochs without a place on the axis; they leave a gap.
        points = [
            (min((i + 1) * run.steps_per_epoch, run.steps), logs)
            for i, logs in enumerate(run.history)
        ]
        for drawn, part in groupby(points, lambda p: math.isfinite(p[1]["val_loss"])):
            if drawn:
                drawing.polyline(
                    [at(step, logs["val_loss"]) for step, logs in part],
                    f"line {run.host}",
                )
        # One loop's marks above the line, the other's below: they often coincide.
        side = -1 if run.host == "session" else 1
        for before, (step, logs) in pairwise([*points[:1], *points]):
            if logs["learning_rate"] < before[1]["learning_rate"]:
                x, y = at(step, logs["val_loss"])
                y += 5 * side
                drawing.path(
                    f"M{x:.1f} {y:.1f} l5 {9 * side} h-10 z",
                    run.host,
                    f"{TITLES[run.host]}, step {step}: learning rate cut to "
                    f"{logs['learning_rate']:.2g}",
                )
        x, y = at(*_stop(run))
        drawing.rect(x - 5, y + 9 * side - 5, 10, 10, f"mark {run.host}")
    drawing.text(
        right,
        CURVE_TOP - 8,
        "▲ learning rate cut    ■ stopped",
        "muted",
        anchor="end",
    )


def _loss_range(runs: list[LoopRun]) -> tuple[float, float]:
    """The ends of the loss axis, which is logarithmic."""
    listed = [logs["val_loss"] for run in runs for logs in run.history]
    losses = [max(loss, 1e-9) for loss in listed if math.isfinite(loss)] or [1.0]
    # float32 losses have room for the margins in a float.
    return min(losses) / 1.3, max(losses) * 1.1


def _stop(run: LoopRun) -> tuple[int, float]:
    return run.steps, run.history[-1]["val_loss"] if run.history else math.nan


def _ticks(last: int) -> list[int]:
    step = next(
        (n for k in range(9) for n in (10**k, 2 * 10**k, 5 * 10**k) if last / n <= 10),
        last,
    )
    return list(range(0, last + 1, step))


def _decimal_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times the powers of ten between two numbers."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [n * 10.0**power for power in powers for n in (1, 2, 5)]
    return [tick for tick in ticks if low <= tick <= high]


def _x(column: int) -> float:
    return LEFT + 24 + COLUMN * (column + 0.5)


def _header(drawing: Drawing, grid: list[Column], rows: int) -> None:
    bottom = GRID_TOP + ROW * rows
    drawing.text(24, 316, "Every event of every guest, lined up", "heading")
    drawing.text(24, 336, "A dot is one event, a number so many events.", "muted")
    start = 0
    for i, (part, members) in enumerate(groupby(grid, lambda c: c.moment.part)):
        size = len(list(members))
        left = LEFT + 24 + COLUMN * start
        if i % 2 == 0:
            drawing.rect(left, GRID_TOP, COLUMN * size, bottom - GRID_TOP + 24, "band")
        drawing.text(
            left + COLUMN * size / 2,
            bottom + 16,
            PARTS[part],
            "muted small",
            anchor="middle",
        )
        start += size
    for i, column in enumerate(grid):
        drawing.text(_x(i) + 3, GRID_TOP - 8, column.label, "small", angle=-52)


def _row(drawing: Drawing, runs: list[LoopRun], grid: list[Column], row: int) -> None:
    guest = runs[0].guests[row]
    y = GRID_TOP + ROW * (row + 0.5)
    drawing.line(24, y - ROW / 2, _x(len(grid) - 1) + COLUMN / 2, y - ROW / 2, "rule")
    differs = any(run.differences(run.guests[row]) for run in runs)
    drawing.text(LEFT + 12, y - 1, guest.name, "name", anchor="end")
    drawing.text(
        LEFT + 12,
        y + 13,
        "differs from the mapping" if differs else guest.kind,
        "bad small" if differs else "muted small",
        anchor="end",
    )
    for run, lane in zip(runs, (y - 9, y + 9), strict=True):
        counts = count_moments(run, guest.name)
        used = [i for i, column in enumerate(grid) if counts[column.moment]]
        if used:
            drawing.line(_x(used[0]), lane, _x(used[-1]), lane, f"lane {run.host}")
        for i in used:
            _mark(drawing, run, grid[i], counts[grid[i].moment], _x(i), lane)


def _mark(
    drawing: Drawing, run: LoopRun, column: Column, count: int, x: float, y: float
) -> None:
    tip = f"{TITLES[run.host]}, {column.label}: {count} event{'s' * (count > 1)}"
    if count == 1 and not column.counted:
        drawing.circle(x, y, 5, run.host, tip)
    else:
        drawing.pill(x, y, str(count), run.host, tip)
