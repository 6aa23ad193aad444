"""The demo's check of the events that guests get in the processes of a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from hookbridge import lifecycle
from hookbridge.demo.story import complaints, shortened
from hookbridge.lifecycle import Guest

EVENTS = {
    "hook": [e.name for e in lifecycle.HOOK_EVENTS],
    "callback": [
        e.name for e in lifecycle.CALLBACK_EVENTS if e.name not in lifecycle.ALIASES
    ],
}


def run(kind: Guest, **options: Any) -> list[tuple[str, Any]]:
    """The events of a guest in a job of one process: a correct story too."""
    found = lifecycle.expected_events(
        kind, "session", steps=6, steps_per_epoch=3, validation_batches=1, **options
    )
    return [(event, number) for event, number in found]


def without(events: Iterable[tuple[str, Any]], *names: str) -> list[tuple[str, Any]]:
    return [event for event in events if event[0] not in names]


@pytest.mark.parametrize("kind", ["hook", "callback"])
def test_a_run_in_one_process_is_a_story(kind: Guest) -> None:
    assert complaints(kind, run(kind), EVENTS[kind]) == []
    assert complaints(kind, run(kind), EVENTS[kind], lagging=True) == []
    assert complaints(kind, run(kind), EVENTS[kind], interrupted=True) == []


def test_only_what_the_guest_has_is_expected() -> None:
    events = without(run("callback"), "on_train_batch_begin", "on_train_begin")
    assert complaints("callback", events, EVENTS["callback"])
    has = {event for event, _ in events}
    assert complaints("callback", events, has) == []


def test_steps_may_lag_where_they_lag() -> None:
    start, end = run("hook")[:2], run("hook")[-1:]
    steps = [("before_run", None)] * 3 + [("after_run", None)] * 3
    assert (
        complaints("hook", [*start, *steps, *end], EVENTS["hook"], lagging=True) == []
    )
    assert complaints("hook", [*start, *steps, *end], EVENTS["hook"])


def test_an_interruption_cuts_the_end_and_nothing_else() -> None:
    hook = [*run("hook")[:-1], ("before_run", None)]
    assert complaints("hook", hook, EVENTS["hook"], interrupted=True) == []
    assert complaints("hook", hook, EVENTS["hook"])
    whole = run("callback")
    cut = whole[: whole.index(("on_train_batch_end", 1), 12)]
    assert complaints("callback", cut, EVENTS["callback"], interrupted=True) == []
    assert complaints("callback", cut, EVENTS["callback"])
    early = without(cut, "on_train_begin")
    assert complaints("callback", early, EVENTS["callback"], interrupted=True)


@pytest.mark.parametrize("event", ["begin", "after_create_session", "end"])
def test_a_missing_hook_event_is_noticed(event: str) -> None:
    (line,) = complaints("hook", without(run("hook"), event), EVENTS["hook"])
    assert line.startswith("received ")


@pytest.mark.parametrize("event", sorted({event for event, _ in run("callback")}))
def test_a_missing_callback_event_is_noticed(event: str) -> None:
    events = without(run("callback"), event)
    assert complaints("callback", events, EVENTS["callback"])


def test_numbers_are_checked() -> None:
    events = run("callback")
    again = [("on_epoch_begin", 0) if e[0] == "on_epoch_begin" else e for e in events]
    found = complaints("callback", again, EVENTS["callback"])
    assert found == ["on_epoch_begin of [0, 0]; expected 0, 1, 2 and so on"]
    back = [
        ("on_train_batch_end", 2) if e[0] == "on_train_batch_end" else e for e in events
    ]
    found = complaints("callback", back, EVENTS["callback"])
    assert found == ["on_train_batch_end(2) came after on_train_batch_end(2)"]


def test_a_late_process_begins_with_the_epoch_that_the_others_had_come_to() -> None:
    moved = [
        (event, number + 4 if event.startswith("on_epoch") else number)
        for event, number in run("callback")
    ]
    assert complaints("callback", moved, EVENTS["callback"], late=True) == []
    assert complaints("callback", moved, EVENTS["callback"]) == [
        "on_epoch_begin of [4, 5]; expected 0, 1, 2 and so on",
        "on_epoch_end of [4, 5]; expected 0, 1, 2 and so on",
    ]
    gap = [(e, 7 if (e, n) == ("on_epoch_end", 5) else n) for e, n in moved]
    assert complaints("callback", gap, EVENTS["callback"], late=True) == [
        "on_epoch_end of [4, 7]; expected 4, 5, 6 and so on"
    ]


def test_long_sequences_are_shortened() -> None:
    assert shortened("a " + "b c " * 50 + "d ") == "a [b c]... d "
