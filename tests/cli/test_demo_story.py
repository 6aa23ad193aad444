"""The demo's check of the events that guests get in the processes of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hookbridge.ground import lifecycle
from hookbridge.ground.lifecycle import Kind
from hookbridge.jobs.demo.demo_story import complaints

ONE_TENSORFLOW = True
Events = list[tuple[str, Any]]
EVENTS = {
    "hook": [e.name for e in lifecycle.HOOK_EVENTS],
    "callback": [
        e.name for e in lifecycle.CALLBACK_EVENTS if e.name not in lifecycle.ALIASES
    ],
}
# The events of a guest in a job of one process: a correct story too.
HOOK, CALLBACK = (
    [
        (event, number)
        for event, number in lifecycle.expected_events(
            kind, "session", steps=6, steps_per_epoch=3, validation_batches=1
        )
    ]
    for kind in ("hook", "callback")
)
STEPS = [("before_run", None)] * 3 + [("after_run", None)] * 3
CUT = CALLBACK[: CALLBACK.index(("on_train_batch_end", 1), 12)]


def without(events: Events, name: str) -> Events:
    return [event for event in events if event[0] != name]


def numbered(event: str, number: Callable[[Any], int]) -> Events:
    """The callback's events, with other numbers of one event."""
    return [(e, number(n) if e.startswith(event) else n) for e, n in CALLBACK]


LATE = numbered("on_epoch", lambda epoch: epoch + 4)


@pytest.mark.parametrize(
    ("kind", "events", "options"),
    [
        ("hook", [*HOOK[:2], *STEPS, *HOOK[-1:]], {"lagging": True}),
        ("hook", [*HOOK[:-1], ("before_run", None)], {"is_chief": False}),
        ("callback", CUT, {"is_chief": False}),
        ("callback", LATE, {"is_chief": False}),
    ],
)
def test_a_story_where_it_may_differ(
    kind: Kind, events: Events, options: dict[str, bool]
) -> None:
    whole = HOOK if kind == "hook" else CALLBACK
    assert complaints(kind, whole, EVENTS[kind]) == []
    assert complaints(kind, whole, EVENTS[kind], **options) == []
    assert complaints(kind, events, EVENTS[kind], **options) == []
    assert complaints(kind, events, EVENTS[kind])


def test_every_missing_event_is_noticed(subtests: pytest.Subtests) -> None:
    for event in ("begin", "after_create_session", "end"):
        with subtests.test(str(event)):
            (line,) = complaints("hook", without(HOOK, event), EVENTS["hook"])
            assert line.startswith("the order, ")
    for event in {event for event, _ in CALLBACK}:
        less = without(CALLBACK, event)
        assert complaints("callback", less, EVENTS["callback"]), event
        assert complaints("callback", less, {e for e, _ in less}) == [], event
    early = without(CUT, "on_train_begin")
    assert complaints("callback", early, EVENTS["callback"], is_chief=False)


@pytest.mark.parametrize(
    ("events", "is_chief", "message"),
    [
        (
            numbered("on_epoch_begin", lambda epoch: 0),
            *(True, "on_epoch_begin(0) came after on_epoch_begin(0)"),
        ),
        (
            numbered("on_train_batch_end", lambda batch: 2),
            *(True, "on_train_batch_end(2) came after on_train_batch_end(2)"),
        ),
        (
            [(e, 7 if (e, n) == ("on_epoch_end", 5) else n) for e, n in LATE],
            *(False, "on_epoch_end(7) came after on_epoch_end(4)"),
        ),
    ],
)
def test_numbers_are_checked(events: Events, is_chief: bool, message: str) -> None:
    faults = complaints("callback", events, EVENTS["callback"], is_chief=is_chief)
    assert faults == [message]
