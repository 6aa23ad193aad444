"""The order of events as a picture: a row for each guest, a column for each event."""

from __future__ import annotations

import html
from collections.abc import Sequence

from hookbridge.report.story import Column, Item, columns_of
from hookbridge.report.timeline import KINDS, Timeline, kind_of

_COLUMN, _ROW, _LABEL = 24, 18, 170
_HEAD, _BRACKET = 140, 20
_MOST_COLUMNS = 60

STYLE = """
.dot { fill: var(--line); }
.bracket { stroke: var(--faint); stroke-width: 1.4; fill: none; }
.story svg { max-width: none; }
"""
LEGEND = f"{KINDS}</p>"


def picture(timeline: Timeline, items: Sequence[Item]) -> str:
    """The story of a process as SVG; repetitions are drawn once, with their number.

    Args:
      timeline: for the names of the guests.
      items: its story.
    """
    columns = list(columns_of(items))
    shown = columns[:_MOST_COLUMNS]
    brackets = [b for b in _brackets(items) if b[1] <= len(shown)]
    depth = max((level for *_, level in brackets), default=0)
    rows = len(timeline.guests)
    bottom = _HEAD + rows * _ROW + 4
    width = _LABEL + _COLUMN * len(shown) + 80
    height = bottom + depth * _BRACKET + 4
    name = html.escape(f"{timeline.process}: order of events")
    parts = [
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{name}">'
    ]
    for place, guest in enumerate(timeline.guests):
        middle = _middle(place)
        parts.append(
            f'<text x="0" y="{middle + 4}">{html.escape(guest)}</text><path '
            f'class="lane" d="M{_LABEL} {middle}H{_LABEL + _COLUMN * len(shown)}"/>'
        )
    parts += [_column(place, column) for place, column in enumerate(shown)]
    for first, last, times, level in brackets:
        left, right = _LABEL + _COLUMN * first + 4, _LABEL + _COLUMN * last - 4
        down = bottom + (level - 1) * _BRACKET
        parts.append(
            f'<path class="bracket" d="M{left} {down}v4H{right}v-4"/><text '
            f'class="faint" x="{(left + right) / 2}" y="{down + 16}" '
            f'text-anchor="middle">&times; {times}</text>'
        )
    left_out = len(columns) - len(shown)
    more = f'<p class="faint">{left_out} more events follow.</p>' if left_out else ""
    return f'<div class="scroll story">{"".join(parts)}</svg></div>{more}'


def _column(place: int, column: Column) -> str:
    x = _LABEL + _COLUMN * place + _COLUMN // 2
    kind = kind_of(column.event)
    event = html.escape(column.event)
    dots = "".join(
        f'<circle class="dot {kind}" cx="{x}" cy="{_middle(guest)}" r="4.5">'
        f"<title>{event}</title></circle>"
        for guest in sorted(column.guests)
    )
    return (
        f'<text x="{x}" y="{_HEAD - 6}" transform="rotate(-60 {x} {_HEAD - 6})">'
        f"{event}</text>{dots}"
    )


def _middle(place: int) -> float:
    return _HEAD + place * _ROW + _ROW / 2


def _brackets(items: Sequence[Item], first: int = 0) -> list[tuple[int, int, int, int]]:
    """`(first column, column after the last, times, level)`; level 1 is innermost."""
    found = []
    for item in items:
        if isinstance(item, Column):
            first += 1
            continue
        inner = _brackets(item.items, first)
        after = first + len(list(columns_of(item.items)))
        level = 1 + max((level for *_, level in inner), default=0)
        found += [*inner, (first, after, item.times, level)]
        first = after
    return found
