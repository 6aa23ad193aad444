"""When each guest of a process got its events, as data and as a picture over time."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hookbridge.report.charts import ticks

WIDTH, ROW = 1000, 18
_LABEL, _RIGHT, _AXIS = 170, 10, 22
# Events of steps are drawn as a band; a callback's have `batch` in their names.
_STEP_EVENTS = ("before_run", "after_run")

STYLE = """
.hook { --line: var(--c); } .callback { --line: var(--d); }
.lane { stroke: var(--rule); } .band { fill: var(--line); fill-opacity: .4; }
.epoch { fill: var(--rule); }
.mark { stroke: var(--line); stroke-width: 2; }
.key.epoch { --line: var(--rule); height: .9em; } .key.band { opacity: .4; }
"""
KINDS = (
    '<p class="legend"><span class="hook"><i class="key"></i>hooks</span>'
    '<span class="callback"><i class="key"></i>callbacks</span>'
)
LEGEND = (
    f"{KINDS}<span>pale: steps and batches</span><span>grey: epochs</span>"
    "<span>full: other events</span></p>"
)


class Event(NamedTuple):
    """One event: the guest's index, the event's name and number, when it began."""

    guest: int
    name: str
    number: int | None
    secs: float


@dataclass(frozen=True)
class Timeline:
    """The events of all guests of one process.

    Attributes:
      process: its name, such as "worker 0".
      started: the time at which `secs` of the events is 0, in seconds of Unix time.
      guests: their names.
      events: in order of arrival.
    """

    process: str
    started: float
    guests: Sequence[str]
    events: Sequence[Event]

    @classmethod
    def of(
        cls,
        process: str,
        started: float,
        guests: Iterable[str],
        records: Iterable[Mapping[str, Any]],
    ) -> Timeline:
        """The timeline of the records of an `EventLog`.

        Args:
          process: its name.
          started: when the log was made, in seconds of Unix time.
          guests: the names of all guests, in their order.
          records: as `EventLog.to_json` gives them.
        """
        places = {name: place for place, name in enumerate(dict.fromkeys(guests))}
        events = [
            Event(
                places[record["guest"]],
                record["event"],
                record["number"],
                round(record["secs"], 5),
            )
            for record in records
        ]
        return cls(process, started, tuple(places), events)

    @classmethod
    def from_json(cls, held: Mapping[str, Any]) -> Timeline:
        """The timeline of its fields, as JSON holds them."""
        events = [Event(*each) for each in held["events"]]
        return cls(**{**held, "events": events})


def picture(timeline: Timeline, *, starts: float, ends: float) -> str:
    """The timeline as SVG, a row for each guest.

    Args:
      timeline: the timeline of one process.
      starts: where the picture begins, in seconds of Unix time; all processes of a loop
        have the same.
      ends: where it ends.
    """
    span = max(ends - starts, 1e-3)
    shift = timeline.started - starts
    height = ROW * len(timeline.guests) + _AXIS

    def across(secs: float) -> float:
        return round(_LABEL + (secs + shift) / span * (WIDTH - _LABEL - _RIGHT), 1)

    name = html.escape(f"{timeline.process}: events over time")
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{name}">']
    for secs in ticks(0, span):
        if secs <= span:
            x = across(secs - shift)
            parts.append(
                f'<path class="grid" d="M{x} 0V{height - _AXIS}"/><text class="faint" '
                f'x="{x}" y="{height - 6}" text-anchor="middle">{secs:g} s</text>'
            )
    for place, guest in enumerate(timeline.guests):
        middle = place * ROW + ROW / 2
        events = [event for event in timeline.events if event.guest == place]
        parts.append(
            f'<text x="0" y="{middle + 4}">{html.escape(guest)}</text>'
            f'<path class="lane" d="M{_LABEL} {middle}H{WIDTH - _RIGHT}"/>'
            f'<g class="{kind_of(events[0].name) if events else "none"}">'
        )
        parts += [*_lane(events, middle, across), "</g>"]
    return "".join([*parts, "</svg>"])


def _lane(
    events: Sequence[Event], middle: float, across: Callable[[float], float]
) -> list[str]:
    parts = []
    begins: dict[int | None, float] = {}
    for event in events:
        if event.name == "on_epoch_begin":
            begins[event.number] = event.secs
        elif event.name == "on_epoch_end" and event.number in begins:
            left, right = across(begins[event.number]), across(event.secs)
            parts.append(
                f'<rect class="epoch" x="{left}" y="{middle - 7}" height="14" '
                f'width="{max(right - left - 0.8, 0.5):.1f}">'
                f"<title>epoch {event.number}</title></rect>"
            )
    pixels = sorted({int(across(e.secs)) for e in events if _is_of_step(e.name)})
    parts += [
        f'<rect class="band" x="{left}" y="{middle - 4}" width="{width}" height="8"/>'
        for left, width in _runs(pixels)
    ]
    for event in events:
        if not _is_of_step(event.name) and not event.name.startswith("on_epoch"):
            x, name = across(event.secs), html.escape(event.name)
            parts.append(
                f'<path class="mark" d="M{x} {middle - 5}v10">'
                f"<title>{name}</title></path>"
            )
    return parts


def kind_of(event: str) -> str:
    """The kind of guest that gets an event, "hook" or "callback"."""
    return "callback" if event.startswith(("on_", "set_")) else "hook"


def _is_of_step(event: str) -> bool:
    return event in _STEP_EVENTS or "batch" in event


def _runs(pixels: Sequence[int]) -> list[tuple[int, int]]:
    """`(first, length)` of each unbroken run of whole numbers."""
    runs: list[tuple[int, int]] = []
    for pixel in pixels:
        if runs and sum(runs[-1]) == pixel:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((pixel, 1))
    return runs
