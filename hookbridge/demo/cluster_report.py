"""The two clusters side by side: each guest's events in each process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hookbridge.demo.cluster_story import complaints, shortened
from hookbridge.demo.report import columns
from hookbridge.demo.settings import DemoSettings


def as_dict(
    settings: DemoSettings,
    titles: Mapping[str, str],
    runs: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, Any]:
    """Everything the table shows, ready for `json.dump`.

    Args:
      settings: the demo's configuration.
      titles: what each loop is called.
      runs: what each process of each loop left.
    """
    import tensorflow as tf

    loops = {}
    for name, processes in runs.items():
        (chief,) = (p for p in processes if p["test_accuracy"] is not None)
        loops[name] = {
            "loop": titles[name],
            "stop_step": chief["steps"],
            "seconds": chief["seconds"],
            "test_accuracy": chief["test_accuracy"],
            "test_loss": chief["test_loss"],
            "chief": chief["task"],
            "processes": {p["task"]: _process(p, name, chief) for p in processes},
        }
    wrong = [
        line
        for loop in loops.values()
        for process in loop["processes"].values()
        for guest in process["guests"].values()
        for line in guest["differences"]
    ]
    return {
        "tensorflow": tf.__version__,
        "settings": asdict(settings),
        "loops": loops,
        "ok": not wrong,
    }


def _process(
    process: Mapping[str, Any], loop: str, chief: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "steps": process["steps"],
        "guests": {
            name: _guest(guest, lagging=loop == "fit", others=process is not chief)
            for name, guest in process["guests"].items()
        },
    }


def _guest(guest: Mapping[str, Any], *, lagging: bool, others: bool) -> dict[str, Any]:
    events = guest["events"]
    found = complaints(
        guest["kind"],
        events,
        guest["expected"],
        lagging=lagging,
        interrupted=others,
        late=others,
    )
    if not guest["runs_here"]:
        found = [f"received {len(events)} events, expected none"] if events else []
    return {
        "kind": guest["kind"],
        "role": guest["role"],
        "runs_here": guest["runs_here"],
        "events": dict(Counter(event for event, _ in events)),
        "story": shortened("".join(f"{event} " for event, _ in events)).strip(),
        "differences": found,
    }


def as_table(report: Mapping[str, Any]) -> str:
    """The report for people: each guest and event, a column for each process."""
    places = [
        (loop, task)
        for loop, facts in report["loops"].items()
        for task in facts["processes"]
    ]
    guests = {place: _guests(report, place) for place in places}
    rows: list[Sequence[str]] = []
    for name, first in guests[places[0]].items():
        events = dict.fromkeys(
            event for place in places for event in guests[place][name]["events"]
        )
        label = f"{name} ({first['kind']}, {first['role']})"
        for event in events:
            counts = (
                str(guests[place][name]["events"].get(event, "-")) for place in places
            )
            rows.append((label, event, *counts))
            label = ""
        rows.append(())
    for label, key, form in (
        ("stopped at step", "stop_step", "{}"),
        ("test accuracy", "test_accuracy", "{:.2%}"),
        ("test loss", "test_loss", "{:.4f}"),
        ("seconds", "seconds", "{:.1f}"),
    ):
        cells = (
            form.format(report["loops"][loop][key])
            if task == report["loops"][loop]["chief"]
            else ""
            for loop, task in places
        )
        rows.append((label, "", *cells))
    header = (
        "guest (kind, role)",
        "event",
        *(f"{loop}: {task}" for loop, task in places),
    )
    lines = columns([header, *rows])
    lines += differences(report)
    lines.append(
        "Every guest saw the documented events in every process."
        if report["ok"]
        else "A guest did not see the documented events."
    )
    return "\n".join(lines)


def differences(report: Mapping[str, Any]) -> list[str]:
    """A line for each thing that a guest saw otherwise than documented."""
    return [
        f"{name} in {loop}, {task}: {line}"
        for loop, facts in report["loops"].items()
        for task in facts["processes"]
        for name, guest in _guests(report, (loop, task)).items()
        for line in guest["differences"]
    ]


def _guests(report: Mapping[str, Any], place: tuple[str, str]) -> Mapping[str, Any]:
    loop, task = place
    found: Mapping[str, Any] = report["loops"][loop]["processes"][task]["guests"]
    return found
