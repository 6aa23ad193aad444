"""Calls and times of events, and the forms in which they are shown."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

from hookbridge.ground.texts.counted import counted
from hookbridge.ground.texts.text_table import aligned

_MOST_CALLS = 200_000  # in a trace; the counts have no limit
# Events that come once for each step; the most reliable one is first.
_OF_STEP = ("step", "on_train_batch_end", "on_train_batch_begin", "before_run")


class Row(NamedTuple):
    """One event of one guest.

    Attributes:
      guest: its name, or `hookbridge` for the bridge itself.
      event: the method.
      calls: how often it was called.
      seconds: the time in it, without the time of other rows.
      share: the part of the time of all steps and of what follows the last one,
        without the first step and the first call, which build graphs; None if there
        were too few steps.
      first_seconds: the part of `seconds` that the first call took.
    """

    guest: str
    event: str
    calls: int
    seconds: float
    share: float | None
    first_seconds: float


@dataclass(slots=True)
class _Count:
    """The calls of one event of one guest, and the time of the first."""

    calls: int = 0
    seconds: float = 0.0
    first: float = 0.0


@dataclass(slots=True)
class _Steps:
    """The steps that one object saw: how many, and when the second and last began."""

    number: int = 0
    second: float = 0.0
    last: float = 0.0

    def add(self, begin: float) -> None:
        self.number += 1
        self.last = begin
        if self.number == 2:
            self.second = begin


class Timings:
    """Measures the time of each call.

    Calls may be nested, and on several threads.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._counts: dict[tuple[str, str], _Count] = defaultdict(_Count)
        # (guest, event, begin, seconds, thread)
        self._calls: list[tuple[str, str, float, float, int]] = []
        # (event, object) -> steps: several objects may share a row.
        self._steps: dict[tuple[str, int], _Steps] = defaultdict(_Steps)
        self._open = _Open()
        self._start = self._end = clock()  # of the profile, of its last call

    def enter(self, guest: str = "") -> None:
        """Note that a call begins, of a row or of none."""
        self._open.calls.append(_Call(guest, self._clock()))

    @property
    def innermost(self) -> str:
        """The row of the call that is open on this thread; empty if there is none."""
        calls = self._open.calls
        return calls[-1].guest if calls else ""

    def leave(self, guest: str, event: str, source: int = 0) -> None:
        """End the last call that began; one without an event is in no row."""
        now = self._end = self._clock()
        calls = self._open.calls
        call = calls.pop()
        begin = call.begin
        if calls:
            calls[-1].inner += now - begin
        if not event:
            return
        count = self._counts[guest, event]
        count.calls += 1
        count.seconds += now - begin - call.inner
        if count.calls == 1:
            count.first = count.seconds
        if event in _OF_STEP:
            self._steps[event, source].add(begin)
        if len(self._calls) < _MOST_CALLS:
            thread = threading.get_ident()
            self._calls.append((guest, event, begin, now - begin, thread))

    # --- numbers -------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """How many steps were seen."""
        return self._best().number

    @property
    def step_seconds(self) -> float | None:
        """The mean time from step to step; the first step is left out.

        None where fewer than three steps were seen.
        """
        steps = self._best()
        if steps.number < 3:
            return None
        return (steps.last - steps.second) / (steps.number - 2)

    def _best(self) -> _Steps:
        """Return the steps of the object that saw most of an event of `_OF_STEP`."""
        for wanted in _OF_STEP:
            matching = [s for (event, _), s in self._steps.items() if event == wanted]
            if matching:
                return max(matching, key=lambda steps: steps.number)
        return _Steps()

    @property
    def rows(self) -> list[Row]:
        """All events that were called, the slowest first."""
        steps, step, secs = self._best(), self.step_seconds, None
        if step is not None:  # calls may follow the last step for long
            secs = max(step * (steps.number - 1), self._end - steps.second)
        rows = [
            Row(
                *key,
                count.calls,
                count.seconds,
                (count.seconds - count.first) / secs if secs else None,
                count.first,
            )
            for key, count in self._counts.items()
        ]
        return sorted(rows, key=lambda row: -row.seconds)

    # --- forms ---------------------------------------------------------------------

    def as_dict(self) -> dict[str, Any]:
        """Return the rows and the steps, ready for JSON."""
        return {
            "steps": self.steps,
            "step_seconds": self.step_seconds,
            "rows": [row._asdict() for row in self.rows],
        }

    def as_chrome_trace(self) -> dict[str, Any]:
        """Return the calls as a trace, ready for JSON: a line for each guest."""
        guests = list(dict.fromkeys(call[0] for call in self._calls))
        lines = {
            guest: {"pid": os.getpid(), "tid": number}
            for number, guest in enumerate(guests)
        }
        events: list[dict[str, Any]] = [
            {"name": "thread_name", "ph": "M", **line, "args": {"name": guest}}
            for guest, line in lines.items()
        ]
        for guest, event, begin, seconds, thread in self._calls:
            times = {"ts": 1e6 * (begin - self._start), "dur": 1e6 * seconds}
            row = {"name": event, "cat": guest, "ph": "X", **lines[guest], **times}
            events.append({**row, "args": {"thread": thread}})
        return {"traceEvents": events, "displayTimeUnit": "ms"}


class Cost(NamedTuple):
    """A row of a table of costs; see `costs`."""

    guest: str
    event: str
    calls: int
    seconds: float
    share: float | None


def costs(profile: Mapping[str, Any], most: int | None = None) -> list[Cost]:
    """Return the first calls of all events as one row, then at most `most` events.

    `profile` is `Timings.as_dict()`. First calls build graphs, so they are in no share
    of the steps: an event that came more than once has the numbers of its later calls,
    and one that came once has no share.
    """
    rows = profile["rows"]
    repeated = [r for r in rows if r["share"] is not None and r["calls"] > 1]
    once = [r for r in rows if r not in repeated]
    later = [
        Cost(
            row["guest"],
            row["event"],
            row["calls"] - 1,
            row["seconds"] - row["first_seconds"],
            row["share"],
        )
        for row in repeated
    ]
    later += [
        Cost(r["guest"], r["event"], r["calls"], r["seconds"], None) for r in once
    ]
    later.sort(key=lambda cost: -cost.seconds)
    if not repeated:
        return later[:most]
    seconds = sum(row["first_seconds"] for row in repeated)
    first = Cost("first calls", "(build graphs)", len(repeated), seconds, None)
    return [first, *later[:most]]


def as_table(profile: Mapping[str, Any], most: int | None = None) -> str:
    """Return `Timings.as_dict()` as a table of at most `most` events."""
    cells = [("guest", "event", "calls", "ms", "us/call", "share of the step")]
    for cost in costs(profile, most):
        share = "" if cost.share is None else f"{cost.share:.1%}"
        seconds, calls = cost.seconds, cost.calls
        numbers = (f"{1e3 * seconds:.1f}", f"{1e6 * seconds / calls:.1f}", share)
        cells.append((cost.guest, cost.event, str(calls), *numbers))
    lines = aligned(cells, left=2)
    step = profile["step_seconds"]
    if step is not None:
        lines.append(
            f"{counted(profile['steps'], 'step')} of {1e3 * step:.3f} ms on average"
        )
    return "\n".join(lines)


@dataclass(slots=True)
class _Call:
    """A call that is open: its row, its start, and the seconds of calls within it."""

    guest: str
    begin: float
    inner: float = 0.0


class _Open(threading.local):
    """The open calls of a thread."""

    def __init__(self) -> None:
        self.calls: list[_Call] = []
