"""Line charts as SVG, and the parts that all pictures of a report share."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hookbridge.insight.report.scalars import Points

# The CSS class of each series. The first of several is drawn broad, so that an equal
# curve above it does not hide it.
_CLASSES = ("a", "b", "c", "d")
_WIDTH, _HEIGHT = 360, 210
_WIDE = 900  # of a chart that has a row of the page to itself
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 20, 26, 24
_MOST_POINTS = 400  # of one series; a chart has no more columns of pixels
_MOST_DOTS = 60


def drawing(name: str, width: float, height: float, parts: Iterable[str]) -> str:
    """Return a picture, with a name for those who cannot see it."""
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'aria-label="{html.escape(name)}">{"".join(parts)}</svg>'
    )


def text(x: float, y: float, words: str, css: str = "", more: str = "") -> str:
    """Return words at a place: their start, or `middle` or `end` by `css`."""
    kind = f' class="{css}"' if css else ""
    return f'<text x="{x}" y="{y}"{kind}{more}>{html.escape(words)}</text>'


def ticks(low: float, high: float, *, whole: bool = False) -> Sequence[float]:
    """Return three to six round numbers that span `low` to `high`."""
    if low == high:
        return [low]
    rough = (high - low) / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * k for k in (1, 2, 5, 10) if unit * k >= rough * 0.999)
    if whole:
        step = max(1.0, step)
    first, last_tick = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(k * step, 12) for k in range(first, last_tick + 1)]


def legend(names: Sequence[str]) -> str:
    """Return the legend: the colour of each series."""
    number = len(names)
    keys = "".join(
        f'<span><i class="key {_class(index, number)}"></i>{html.escape(name)}</span>'
        for index, name in enumerate(names)
    )
    return f'<p class="legend">{keys}</p>'


def chart(
    title: str, series: Mapping[str, Points], caption: str = "", *, wide: bool = False
) -> str:
    """Return a figure with one line for each series; an empty one keeps its colour.

    Args:
      title: what is drawn.
      series: the points of each line, by its name.
      caption: what the line below says after the last numbers.
      wide: whether it has a row of the page to itself.
    """
    drawn = {name: points for name, points in series.items() if points}
    last_values = ", ".join(
        f"{name} {short_number(p[-1][1])}" for name, p in drawn.items()
    )
    below = html.escape("; ".join(filter(None, (f"last: {last_values}", caption))))
    width = _WIDE if wide else _WIDTH
    picture = drawing(title, width, _HEIGHT, _parts(title, series, width))
    figure = '<figure class="wide">' if wide else "<figure>"
    return f"{figure}{picture}<figcaption>{below}</figcaption></figure>"


def _parts(title: str, series: Mapping[str, Points], width: int) -> Iterator[str]:
    """Yield the axes of a chart, its lines, and dots that show their numbers."""
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    low, high = min(ys), max(ys)
    if low == high:  # such as a rate that stays: from 0, so that its size is seen
        low, high = min(low, 0.0), max(high, 0.0)
    x_ticks, y_ticks = ticks(min(xs), max(xs), whole=True), ticks(low, high)
    x_low, x_high = min(*xs, x_ticks[0]), max(*xs, x_ticks[-1])
    y_low, y_high = min(*ys, y_ticks[0]), max(*ys, y_ticks[-1])

    def at(x: float, y: float) -> tuple[float, float]:
        across = (x - x_low) / ((x_high - x_low) or 1)
        up = (y - y_low) / ((y_high - y_low) or 1)
        return (
            round(_LEFT + across * (width - _LEFT - _RIGHT), 1),
            round(_HEIGHT - _BOTTOM - up * (_HEIGHT - _TOP - _BOTTOM), 1),
        )

    yield text(_LEFT, 14, title, "bold")
    for y in y_ticks:
        left, height = at(x_low, y)
        yield f'<path class="grid" d="M{left} {height}H{width - _RIGHT}"/>'
        yield text(left - 6, height + 4, short_number(y), "faint end")
    for x in x_ticks:
        across, bottom = at(x, y_low)
        yield text(across, bottom + 16, short_number(x), "faint middle")
    for index, (name, points) in enumerate(series.items()):
        css = _class(index, len(series))
        places = [(at(*point), point) for point in thin_out(points)]
        yield f'<g class="{css}">{"".join(_curve(name, css, places))}</g>'


def _curve(
    name: str,
    css: str,
    places: Sequence[tuple[tuple[float, float], tuple[float, float]]],
) -> Iterator[str]:
    """Yield a line, and dots that show their numbers under the mouse.

    Args:
      name: the name of the series.
      css: its CSS classes.
      places: where each point is in the picture, and its numbers.
    """
    if places:
        path = " ".join(f"{across},{down}" for (across, down), _ in places)
        yield f'<polyline class="curve {css}" points="{path}"/>'
    if len(places) <= _MOST_DOTS:
        for (across, down), (x, y) in places:
            yield (
                f'<circle class="dot" cx="{across}" cy="{down}" r="2.4"><title>'
                f"{html.escape(name)}: {short_number(x)}, {short_number(y)}"
                "</title></circle>"
            )


def thin_out(points: Points) -> Points:
    """Return at most about `_MOST_POINTS` of the points, always with the last one."""
    stride = max(1, -(-len(points) // _MOST_POINTS))
    return points[:-1:stride] + points[-1:]


def short_number(number: float) -> str:
    """Return a number in four digits, or as a whole number from 100,000 on."""
    return f"{number:.4g}" if abs(number) < 1e5 else f"{number:,.0f}"


def _class(place: int, series: int) -> str:
    """Return the CSS class of one of several series, by its place among them."""
    is_broad = place == 0 and series > 1
    return _CLASSES[place % len(_CLASSES)] + (" broad" if is_broad else "")
