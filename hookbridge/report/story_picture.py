"""The order of events as a picture: a row for each guest, a column for each event."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

from hookbridge.report.account import Account
from hookbridge.report.story import Column, Item, columns_of, story
from hookbridge.report.svg import LABEL, ROW, drawing, lane, middle_of, text
from hookbridge.report.timeline import KINDS

_COLUMN, _HEAD, _BRACKET = 24, 140, 20
_MOST_COLUMNS = 60

LEGEND = f"{KINDS}</p>"


def picture(account: Account) -> str:
    """The story of a process; repetitions are drawn once, with their number."""
    items = story(account.calls)
    columns = list(columns_of(items))
    shown = columns[:_MOST_COLUMNS]
    brackets = [b for b in _brackets(items) if b[1] <= len(shown)]
    bottom = _HEAD + len(account.guests) * ROW + 4
    height = bottom + max((b[3] for b in brackets), default=0) * _BRACKET + 4
    end = LABEL + _COLUMN * len(shown)
    parts = [lane(row, guest, end, _HEAD) for row, guest in enumerate(account.guests)]
    kinds = [guest.kind for guest in account.guests.values()]
    parts += [_column(place, column, kinds) for place, column in enumerate(shown)]
    for first, after, times, level in brackets:
        left, right = LABEL + _COLUMN * first + 4, LABEL + _COLUMN * after - 4
        y = bottom + (level - 1) * _BRACKET
        parts.append(f'<path class="bracket" d="M{left} {y}v4H{right}v-4"/>')
        parts.append(text((left + right) / 2, y + 16, f"x {times}", "faint middle"))
    name = f"{account.process}: order of events"
    left_out = len(columns) - len(shown)
    more = f'<p class="faint">{left_out} more events follow.</p>' if left_out else ""
    drawn = drawing(name, end + 80, height, parts)
    return f'<div class="scroll story">{drawn}</div>{more}'


def _column(place: int, column: Column, kinds: Sequence[str]) -> str:
    x, y = LABEL + _COLUMN * place + _COLUMN // 2, _HEAD - 6
    dots = "".join(
        f'<circle class="dot {kinds[guest]}" cx="{x}" cy="{middle_of(guest, _HEAD)}" '
        f'r="4.5"><title>{html.escape(column.event)}</title></circle>'
        for guest in sorted(column.guests)
    )
    return text(x, y, column.event, more=f' transform="rotate(-60 {x} {y})"') + dots


def _brackets(
    items: Sequence[Item], first: int = 0
) -> Iterator[tuple[int, int, int, int]]:
    """`(first column, column after the last, times, level)`; level 1 is innermost."""
    for item in items:
        after = first + len(list(columns_of([item])))
        if not isinstance(item, Column):
            inner = list(_brackets(item.items, first))
            yield from inner
            yield first, after, item.times, 1 + max((b[3] for b in inner), default=0)
        first = after
