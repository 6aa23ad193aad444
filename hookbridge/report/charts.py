"""Line charts as SVG."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence

from hookbridge.report.scalars import Points

# The CSS class of each series, see `page.STYLE`. The first series is drawn broad, so
# that an equal curve above it does not hide it.
CLASSES = ("a", "b", "c", "d")
WIDTH, HEIGHT = 360, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 20, 26, 24
_MOST_POINTS = 400  # of one series; a chart has no more columns of pixels

STYLE = """
.charts { display: grid; gap: 1rem 1.5rem;
  grid-template-columns: repeat(auto-fill, minmax(300px, 1fr)); }
figure { margin: 0; } figcaption { color: var(--faint); font-size: .85em;
  overflow-wrap: anywhere; }
.grid { stroke: var(--rule); stroke-width: 1; }
.curve { fill: none; stroke: var(--line); stroke-width: 1.8; stroke-linejoin: round; }
.curve.broad { stroke-width: 6; stroke-opacity: .4; }
.points circle { fill: var(--line); }
.key { display: inline-block; width: 1.6em; height: .35em; border-radius: .2em;
  background: var(--line); vertical-align: middle; margin-right: .4em; }
.key.broad { height: .7em; opacity: .5; }
.legend span { margin-right: 1.4em; }
"""


def legend(names: Sequence[str]) -> str:
    """The legend: the colour of each series."""
    keys = "".join(
        f'<span><i class="key {_class(place)}{_broad(place)}"></i>'
        f"{html.escape(name)}</span>"
        for place, name in enumerate(names)
    )
    return f'<p class="legend">{keys}</p>'


def chart(title: str, series: Mapping[str, Points], caption: str = "") -> str:
    """A figure with one line for each series, laid over each other.

    Args:
      title: what is drawn.
      series: `{name: points}`; the colours follow the order, an empty series keeps its
        colour.
      caption: the line below.
    """
    drawn = {name: points for name, points in series.items() if points}
    xs = [x for points in drawn.values() for x, _ in points]
    ys = [y for points in drawn.values() for _, y in points]
    x_ticks, y_ticks = ticks(min(xs), max(xs), whole=True), ticks(min(ys), max(ys))
    x_low, x_high = min(*xs, x_ticks[0]), max(*xs, x_ticks[-1])
    y_low, y_high = min(*ys, y_ticks[0]), max(*ys, y_ticks[-1])

    def at(x: float, y: float) -> tuple[float, float]:
        across = (x - x_low) / ((x_high - x_low) or 1)
        up = (y - y_low) / ((y_high - y_low) or 1)
        return (
            round(_LEFT + across * (WIDTH - _LEFT - _RIGHT), 1),
            round(HEIGHT - _BOTTOM - up * (HEIGHT - _TOP - _BOTTOM), 1),
        )

    name = html.escape(title)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}">',
        f'<text x="{_LEFT}" y="14" font-weight="600">{name}</text>',
    ]
    for y in y_ticks:
        left, height = at(x_low, y)
        parts.append(
            f'<path class="grid" d="M{left} {height}H{WIDTH - _RIGHT}"/>'
            f'<text class="faint" x="{left - 6}" y="{height + 4}" '
            f'text-anchor="end">{shown(y)}</text>'
        )
    for x in x_ticks:
        across, bottom = at(x, y_low)
        parts.append(
            f'<text class="faint" x="{across}" y="{bottom + 16}" '
            f'text-anchor="middle">{shown(x)}</text>'
        )
    for place, (label, points) in enumerate(series.items()):
        if points:
            parts.append(_line(label, place, [(*at(*p), *p) for p in thinned(points)]))
    last = ", ".join(
        f"{label} {shown(points[-1][1])}" for label, points in drawn.items()
    )
    below = html.escape("; ".join(filter(None, (f"last: {last}", caption))))
    parts.append(f"</svg><figcaption>{below}</figcaption>")
    return f"<figure>{''.join(parts)}</figure>"


def _line(
    label: str, place: int, points: Sequence[tuple[float, float, float, float]]
) -> str:
    """Points are `(across, down, x, y)`; a point under the mouse shows its numbers."""
    path = " ".join(f"{across},{down}" for across, down, _, _ in points)
    radius = 2.2 if place else 3.4
    dots = "".join(
        f'<circle cx="{across}" cy="{down}" r="{radius}">'
        f"<title>{html.escape(label)}: {shown(x)}, {shown(y)}</title></circle>"
        for across, down, x, y in points
        if len(points) <= 60
    )
    return (
        f'<g class="{_class(place)}"><polyline class="curve{_broad(place)}" '
        f'points="{path}"/><g class="points">{dots}</g></g>'
    )


def ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Three to six round numbers that span `low` to `high`."""
    if low == high:
        return [low]
    rough = (high - low) / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * k for k in (1, 2, 5, 10) if unit * k >= rough * 0.999)
    if whole:
        step = max(1.0, step)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def thinned(points: Points) -> Points:
    """About `_MOST_POINTS` of the points at most, always with the last one."""
    stride = -(-len(points) // _MOST_POINTS)
    return points[:-1:stride] + points[-1:]


def shown(number: float) -> str:
    """A number in four digits, or as a whole number from 100,000 on."""
    return f"{number:.4g}" if abs(number) < 1e5 else f"{number:,.0f}"


def _class(place: int) -> str:
    return CLASSES[place % len(CLASSES)]


def _broad(place: int) -> str:
    return "" if place else " broad"
