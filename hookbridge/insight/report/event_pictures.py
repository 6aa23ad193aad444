"""The events of a process as pictures, in order and over time."""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterator, Sequence

from hookbridge.insight.report.account import Account, EventCall
from hookbridge.insight.report.charts import drawing, text, ticks
from hookbridge.insight.report.story import Column, Item, columns_of, story

_LABEL, _ROW = 170, 18  # the width of a guest's name, and the height of its row
_COLUMN, _HEAD, _BRACKET = 24, 140, 20
_MOST_COLUMNS = 60
_WIDTH, _RIGHT, _AXIS = 1000, 10, 22
# Events of steps are drawn as a band; a callback's have `batch` in their names.
_STEP_EVENTS = ("before_run", "after_run")

_KINDS = (
    '<p class="legend"><span class="hook"><i class="key"></i>hooks</span>'
    '<span class="callback"><i class="key"></i>callbacks</span>'
)
ORDER_LEGEND = f"{_KINDS}</p>"
TIMELINE_LEGEND = (
    f"{_KINDS}<span>pale: steps and batches</span><span>grey: epochs</span>"
    "<span>full: other events</span></p>"
)


def _middle_of(row: int, top: float = 0) -> float:
    """Return the height of the middle of a row."""
    return top + row * _ROW + _ROW / 2


def _lane(row: int, guest: str, end: float, top: float = 0) -> str:
    """Return a guest's name, and the line on which its events are marked."""
    y = _middle_of(row, top)
    return text(0, y + 4, guest) + f'<path class="lane" d="M{_LABEL} {y}H{end}"/>'


def order_picture(account: Account) -> str:
    """Return the story of a process; repetitions are drawn once, with their number."""
    items = story(account.calls)
    columns = list(columns_of(items))
    shown = columns[:_MOST_COLUMNS]
    brackets = [b for b in _brackets(items) if b[1] <= len(shown)]
    bottom = _HEAD + len(account.guests) * _ROW + 4
    height = bottom + max((b[3] for b in brackets), default=0) * _BRACKET + 4
    end = _LABEL + _COLUMN * len(shown)
    parts = [_lane(row, guest, end, _HEAD) for row, guest in enumerate(account.guests)]
    kinds = [guest.kind for guest in account.guests.values()]
    parts += [_column(index, column, kinds) for index, column in enumerate(shown)]
    for first, after, times, level in brackets:
        left, right = _LABEL + _COLUMN * first + 4, _LABEL + _COLUMN * after - 4
        y = bottom + (level - 1) * _BRACKET
        parts.append(f'<path class="bracket" d="M{left} {y}v4H{right}v-4"/>')
        parts.append(text((left + right) / 2, y + 16, f"x {times}", "faint middle"))
    name = f"{account.process}: order of events"
    left_out = len(columns) - len(shown)
    more = f'<p class="faint">{left_out} more events follow.</p>' if left_out else ""
    drawn = drawing(name, end + 80, height, parts)
    return f'<div class="scroll story">{drawn}</div>{more}'


def _column(place: int, column: Column, kinds: Sequence[str]) -> str:
    x, y = _LABEL + _COLUMN * place + _COLUMN // 2, _HEAD - 6
    dots = "".join(
        f'<circle class="dot {kinds[guest]}" cx="{x}" cy="{_middle_of(guest, _HEAD)}" '
        f'r="4.5"><title>{html.escape(column.event)}</title></circle>'
        for guest in sorted(column.guests)
    )
    return text(x, y, column.event, more=f' transform="rotate(-60 {x} {y})"') + dots


def _brackets(
    items: Sequence[Item], first: int = 0
) -> Iterator[tuple[int, int, int, int]]:
    """Yield `(first column, column after the last, times, level)`; 1 is innermost."""
    for item in items:
        after = first + len(list(columns_of([item])))
        if not isinstance(item, Column):
            inner = list(_brackets(item.items, first))
            yield from inner
            yield first, after, item.times, 1 + max((b[3] for b in inner), default=0)
        first = after


def timeline(account: Account, starts: float, ends: float) -> str:
    """Return a row for each guest.

    Times are seconds of Unix time, as all processes have.
    """
    height = _ROW * len(account.guests) + _AXIS
    parts = _parts(account, starts, max(ends - starts, 1e-3), height)
    drawn = drawing(f"{account.process}: events over time", _WIDTH, height, parts)
    return f'<div class="scroll timeline">{drawn}</div>'


def _parts(
    account: Account, starts: float, span: float, height: float
) -> Iterator[str]:
    """Yield the time axis, and a lane with the events of each guest."""
    scale = (_WIDTH - _LABEL - _RIGHT) / span
    zero = _LABEL + (account.started - starts) * scale
    for secs in ticks(0, span):
        if secs <= span:
            x = round(_LABEL + secs * scale, 1)
            yield f'<path class="grid" d="M{x} 0V{height - _AXIS}"/>'
            yield text(x, height - 6, f"{secs:g} s", "faint middle")
    for row, guest in enumerate(account.guests):
        events = [event for event in account.calls if event.guest == row]
        yield _lane(row, guest, _WIDTH - _RIGHT)
        yield f'<g class="{account.guests[guest].kind}">'
        places = [(round(zero + event.secs * scale, 1), event) for event in events]
        yield from _marks(places, _middle_of(row))
        yield "</g>"


def _marks(places: Sequence[tuple[float, EventCall]], y: float) -> Iterator[str]:
    """Yield epochs in the back, then bands of steps, then the other events."""
    begins: dict[int | None, float] = {}
    pixels: set[int] = set()
    marks = []
    for x, event in places:
        if event.name == "on_epoch_begin":
            begins[event.number] = x
        elif event.name == "on_epoch_end":
            left = begins.get(event.number, x)
            width = max(x - left - 0.8, 0.5)
            yield (
                f'<rect class="epoch" x="{left}" y="{y - 7}" height="14" '
                f'width="{width:.1f}"><title>epoch {event.number}</title></rect>'
            )
        elif event.name in _STEP_EVENTS or "batch" in event.name:
            pixels.add(int(x))
        else:
            marks.append(
                f'<path class="mark" d="M{x} {y - 5}v10">'
                f"<title>{html.escape(event.name)}</title></path>"
            )
    columns = enumerate(sorted(pixels))
    for _, pairs in itertools.groupby(columns, lambda pair: pair[1] - pair[0]):
        (_, first), *following = pairs
        yield (
            f'<rect class="band" x="{first}" y="{y - 4}" width="{1 + len(following)}" '
            'height="8"/>'
        )
    yield from marks
