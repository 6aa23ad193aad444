"""The lifecycles as Markdown, for the documentation."""

from __future__ import annotations

from typing import get_args

from hookbridge.ground.lifecycle import EVENTS, Ending, Kind, expected_events


def event_map_markdown() -> str:
    """The event map as a Markdown table, one row for each event of either guest."""
    rows = [
        "| guest event | in its own loop: who calls it, when | in the other loop | "
        "counterpart |",
        "|---|---|---|---|",
    ]
    for e in EVENTS.values():
        other = f"`{e.counterpart}`" if e.counterpart else f"none: {e.why_none}"
        rows.append(f"| `{e.name}` | {e.native} | {e.bridged} | {other} |")
    return "\n".join(rows) + "\n"


_ENDINGS: dict[Ending, str] = {
    "clean": "the loop ends, or any guest asked to stop",
    "end_of_data": "the data ends inside a step",
    "error_in_step": "an exception escapes from a step",
    "error_between_steps": "an exception is raised between two steps",
}


def endings_markdown() -> str:
    """The events after the last completed step, by ending, as a Markdown table."""
    rows = [
        "| how it ends | a hook still gets | a callback still gets |",
        "|---|---|---|",
    ]
    for ending, text in _ENDINGS.items():
        cells = []
        for guest in get_args(Kind):
            events = [
                d.event
                for d in expected_events(
                    guest, "session", steps=2, steps_per_epoch=4, ending=ending
                )
            ]
            last = "after_run" if guest == "hook" else "on_train_batch_end"
            after = events[len(events) - events[::-1].index(last) :]
            cells.append(", ".join(f"`{e}`" for e in after) or "nothing")
        rows.append(f"| {text} | {cells[0]} | {cells[1]} |")
    return "\n".join(rows) + "\n"
