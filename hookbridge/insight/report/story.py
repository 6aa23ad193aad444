"""The order in which the guests of a process were called, repetitions told once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hookbridge.ground.lifecycle.overrides import SETTERS
from hookbridge.insight.report.account import EventCall

_LONGEST_BLOCK = 40  # columns; an epoch has fewer when its steps are folded


@dataclass(frozen=True)
class Column:
    """One event, and the guests that got it one after the other."""

    event: str
    guests: frozenset[int]


@dataclass(frozen=True)
class Repeated:
    """Items that come several times in a row: columns, or repetitions of columns."""

    items: tuple[Column | Repeated, ...]
    times: int


Item = Column | Repeated


def story(events: Sequence[EventCall]) -> list[Item]:
    """Return the events of a process in order.

    Items that come several times in a row become one `Repeated`: first steps, then
    epochs.
    """
    items: list[Item] = list(_columns(events))
    for _ in ("steps", "epochs"):
        items = _fold(items)
    return items


def _is_whole(block: Sequence[Item]) -> bool:
    """Return whether a block neither begins with an end nor ends with a start."""
    begins_late = _event(block[0], 0).endswith(("_end", "after_run"))
    return not (begins_late or _event(block[-1], -1).endswith(("_begin", "before_run")))


def _event(item: Item, place: int) -> str:
    """Return the first or the last event."""
    return item.event if isinstance(item, Column) else _event(item.items[place], place)


def _columns(events: Sequence[EventCall]) -> Iterator[Column]:
    """Yield one column for calls of the same event to guests one after the other."""
    event, guests = "", frozenset[int]()
    for call in _setters_sorted(events):
        if call.name != event or call.guest in guests:
            if guests:
                yield Column(event, guests)
            event, guests = call.name, frozenset()
        guests |= {call.guest}
    if guests:
        yield Column(event, guests)


def _setters_sorted(events: Sequence[EventCall]) -> Iterator[EventCall]:
    """Yield the events; the order of setters between guests means nothing."""
    for is_setter, group in itertools.groupby(events, lambda e: e.name in SETTERS):
        calls = list(group)
        yield from sorted(calls, key=lambda e: e.name) if is_setter else calls


def _fold(items: list[Item]) -> list[Item]:
    """Replace repetitions, those of the shortest blocks first."""
    for length in range(1, _LONGEST_BLOCK + 1):
        folded: list[Item] = []
        index = 0
        while index < len(items):
            block, after = items[index : index + length], index + length
            while items[after : after + length] == block:
                after += length
            times = (after - index) // length
            if times > 1 and _is_whole(block):
                folded.append(Repeated(tuple(block), times))
                index = after
            else:
                folded.append(items[index])
                index += 1
        items = folded
    return items


def columns_of(items: Sequence[Item]) -> Iterator[Column]:
    """Yield the columns, each repetition once."""
    for item in items:
        if isinstance(item, Column):
            yield item
        else:
            yield from columns_of(item.items)
