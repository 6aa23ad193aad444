"""When each guest of a process got its events, as a picture over time."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

from hookbridge.report.account import Account, Event
from hookbridge.report.svg import LABEL, ROW, drawing, lane, middle_of, text, ticks

_WIDTH, _RIGHT, _AXIS = 1000, 10, 22
# Events of steps are drawn as a band; a callback's have `batch` in their names.
_STEP_EVENTS = ("before_run", "after_run")

KINDS = (
    '<p class="legend"><span class="hook"><i class="key"></i>hooks</span>'
    '<span class="callback"><i class="key"></i>callbacks</span>'
)
LEGEND = (
    f"{KINDS}<span>pale: steps and batches</span><span>grey: epochs</span>"
    "<span>full: other events</span></p>"
)


def picture(account: Account, starts: float, ends: float) -> str:
    """A row for each guest; times are seconds of Unix time, as all processes have."""
    height = ROW * len(account.guests) + _AXIS
    parts = _parts(account, starts, max(ends - starts, 1e-3), height)
    return drawing(f"{account.process}: events over time", _WIDTH, height, parts)


def _parts(
    account: Account, starts: float, span: float, height: float
) -> Iterator[str]:
    scale = (_WIDTH - LABEL - _RIGHT) / span
    zero = LABEL + (account.started - starts) * scale
    for secs in ticks(0, span):
        if secs <= span:
            x = round(LABEL + secs * scale, 1)
            yield f'<path class="grid" d="M{x} 0V{height - _AXIS}"/>'
            yield text(x, height - 6, f"{secs:g} s", "faint middle")
    for row, guest in enumerate(account.guests):
        events = [event for event in account.calls if event.guest == row]
        yield lane(row, guest, _WIDTH - _RIGHT)
        yield f'<g class="{account.guests[guest].kind}">'
        places = [(round(zero + event.secs * scale, 1), event) for event in events]
        yield from _marks(places, middle_of(row))
        yield "</g>"


def _marks(places: Sequence[tuple[float, Event]], y: float) -> Iterator[str]:
    """Epochs in the back, then bands of steps, then the other events."""
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
    first = None
    for pixel in sorted(pixels):
        first = pixel if first is None else first
        if pixel + 1 not in pixels:  # the end of an unbroken run
            yield (
                f'<rect class="band" x="{first}" y="{y - 4}" '
                f'width="{pixel + 1 - first}" height="8"/>'
            )
            first = None
    yield from marks
