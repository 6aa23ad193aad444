"""The order in which the guests of a process were called, repetitions told once."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hookbridge.report.account import Event

# Given to each guest before anything else; their order between guests means nothing.
_SETTERS = ("set_model", "set_params")
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
MayRepeat = Callable[[Sequence[Item]], bool]


def story(events: Sequence[Event]) -> list[Item]:
    """The events of a process in order.

    Items that come several times in a row become one `Repeated`: first steps, then
    epochs.
    """
    names = {event.name for event in events}
    pairs = {end: begin for end in names if (begin := _begin_of(end)) in names - {end}}
    letters: dict[Item, str] = {}  # a regular expression finds repetitions of letters
    text = "".join(_letter(item, letters) for item in _columns(events))
    for _ in ("steps", "epochs"):
        text = _folded(text, letters, lambda block: _is_whole(block, pairs))
    # If steps end late, no block ends the steps that it begins: any block may repeat.
    text = _folded(text, letters, lambda block: True)
    return _items(text, letters)


def _letter(item: Item, letters: dict[Item, str]) -> str:
    return letters.setdefault(item, chr(len(letters)))


def _items(text: str, letters: Mapping[Item, str]) -> list[Item]:
    items = list(letters)
    return [items[ord(letter)] for letter in text]


def _begin_of(event: str) -> str:
    return "before_run" if event == "after_run" else event.replace("_end", "_begin")


def _is_whole(block: Sequence[Item], pairs: Mapping[str, str]) -> bool:
    """Whether a block ends everything that it begins, and begins all that it ends."""
    first = block[0]
    if isinstance(first, Column) and _begin_of(first.event) != first.event:
        return False
    is_open: set[str] = set()
    for item in block:
        if isinstance(item, Repeated):
            continue
        if item.event in pairs:
            if pairs[item.event] not in is_open:
                return False
            is_open.discard(pairs[item.event])
        elif item.event in pairs.values():
            is_open.add(item.event)
    return not is_open


def _columns(events: Sequence[Event]) -> Iterator[Column]:
    """Calls of the same event to one guest after the other become one column."""
    event, guests = "", frozenset[int]()
    for call in _setters_sorted(events):
        if call.name != event or call.guest in guests:
            if guests:
                yield Column(event, guests)
            event, guests = call.name, frozenset()
        guests |= {call.guest}
    if guests:
        yield Column(event, guests)


def _setters_sorted(events: Sequence[Event]) -> Iterator[Event]:
    for is_setter, group in itertools.groupby(events, lambda e: e.name in _SETTERS):
        calls = list(group)
        yield from sorted(calls, key=lambda e: e.name) if is_setter else calls


def _folded(text: str, letters: dict[Item, str], may_repeat: MayRepeat) -> str:
    """Replaces repetitions by a letter each, those of the shortest blocks first."""
    for length in range(1, _LONGEST_BLOCK + 1):
        repetition = re.compile(rf"(.{{{length}}})\1+", re.DOTALL)
        parts, copied, place = [], 0, 0
        while match := repetition.search(text, place):
            block = tuple(_items(match[1], letters))
            place = match.start() + 1
            if may_repeat(block):
                one = _letter(Repeated(block, len(match[0]) // length), letters)
                parts += [text[copied : match.start()], one]
                copied = place = match.end()
        text = "".join([*parts, text[copied:]])
    return text


def columns_of(items: Sequence[Item]) -> Iterator[Column]:
    """The columns, each repetition once."""
    for item in items:
        if isinstance(item, Column):
            yield item
        else:
            yield from columns_of(item.items)
