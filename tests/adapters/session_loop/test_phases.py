"""Where a training run is: every transition, without TensorFlow."""

from __future__ import annotations

from typing import get_args

import pytest

from hookbridge.adapters.session_loop.training_run.phases import (
    AFTER,
    Event,
    Phase,
    has_failed,
    is_update,
)

ONE_TENSORFLOW = True
PHASES = get_args(Phase)
EVENTS = get_args(Event)

# A row for each phase: what each event makes of it, in the order of the columns; "." is
# the phase itself.
TABLE = """
                  session run      found   step     update       waiting           moved   epoch goes on updated  end
unknown           unknown .        .       in batch update first .                 .       in epoch      .        unknown
in epoch          unknown .        .       in batch update next  .                 .       .             .        unknown
in batch          unknown .        unknown .        .            gradients waiting unknown .             .        unknown
gradients waiting unknown .        .       in batch .            .                 .       .             .        unknown
update first      unknown in batch .       in batch .            .                 .       .             unknown  unknown
update next       unknown in batch .       in batch .            .                 .       .             in epoch unknown
"""  # noqa: E501 - a table


def table() -> dict[tuple[str, str], str]:
    """`{(phase, event): next phase}` of `TABLE`."""
    head, *rows = TABLE.strip("\n").splitlines()
    starts = {event: head.index(f" {event}") + 1 for event in EVENTS}
    ends = [*list(starts.values())[1:], None]
    cells = {}
    for row in rows:
        phase = row[: starts[EVENTS[0]]].strip()
        for (event, start), end in zip(starts.items(), ends, strict=True):
            cell = row[start:end].strip()
            cells[phase, event] = phase if cell == "." else cell
    return cells


def test_every_event_in_every_phase() -> None:
    expected = table()
    assert len(expected) == len(PHASES) * len(EVENTS)
    for phase in PHASES:
        for event in EVENTS:
            after = AFTER[event][phase]
            assert after == expected[phase, event], (phase, event)
            assert after in PHASES


FIRST: list[Event] = ["session", "run", "step", "moved", "epoch goes on"]
STORIES: dict[str, tuple[list[Event], Phase]] = {
    "two steps of an epoch": (
        [*FIRST, "run", "step", "moved", "epoch goes on"],
        "in epoch",
    ),
    "the last step of an epoch": (["session", "run", "step", "moved"], "unknown"),
    "gradients wait for other workers": (
        ["session", "run", "step", "waiting"],
        "gradients waiting",
    ),
    "they are applied": (
        ["session", "run", "step", "waiting", "run", "step", "moved", "epoch goes on"],
        "in epoch",
    ),
    "an update between two steps": (
        [*FIRST, "run", "update"],
        "update next",
    ),
    "an update before the first step": (
        ["session", "run", "update", "updated"],
        "unknown",
    ),
    "a run without a step": (["session", "run", "updated"], "unknown"),
    "a step that raised, and the next run": (
        ["session", "run", "step", "run", "found"],
        "unknown",
    ),
    "an update that raised": (["session", "run", "update", "run"], "in batch"),
    "a session that was lost in a step": (
        ["session", "run", "step", "session"],
        "unknown",
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_a_story(story: str) -> None:
    events, last = STORIES[story]
    phase: Phase = "unknown"
    for event in events:
        phase = AFTER[event][phase]
    assert phase == last


def test_what_has_failed_between_two_runs() -> None:
    assert [p for p in PHASES if has_failed(p)] == [
        "in batch",
        "update first",
        "update next",
    ]
    assert [p for p in PHASES if is_update(p)] == ["update first", "update next"]
