"""Both loops side by side, as a table and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hookbridge.demo.settings import DemoSettings
from hookbridge.lifecycle import Host
from hookbridge.text_table import aligned
from hookbridge.timings import as_table as profile_table

# What one process of a loop saw; `DemoTask` writes it.
Account = Mapping[str, Any]

# The folder beside the accounts with the time of each event.
TIMELINES = "timelines"
RESULTS = {
    "stop_step": "{}",
    "epochs": "{}",
    "test_accuracy": "{:.2%}",
    "test_loss": "{:.4f}",
    "seconds": "{:.1f}",
}
TITLES: dict[Host, tuple[str, str]] = {
    "session": ("MonitoredTrainingSession", ", SyncReplicasOptimizer"),
    "fit": ("Model.fit", ", ParameterServerStrategy"),
}


_MOST_ROWS = 8  # of each loop's table of costs


def title(loop: Host, settings: DemoSettings) -> str:
    """The name of a loop in the report."""
    name, in_cluster = TITLES[loop]
    return name + (in_cluster if settings.num_workers else "")


def as_dict(
    settings: DemoSettings, accounts: Mapping[Host, Sequence[Account]]
) -> dict[str, Any]:
    """Everything the table shows, ready for `to_json`."""
    import tensorflow as tf

    loops: dict[str, Any] = {}
    for loop, processes in accounts.items():
        (chief,) = (process for process in processes if process["is_chief"])
        directory = Path(settings.model_dir) / loop
        loops[loop] = {
            "loop": title(loop, settings),
            **chief["result"],
            "steps_per_epoch": settings.steps_per_epoch,
            "chief": chief["task"],
            "files": sorted(
                path.relative_to(directory).as_posix()
                for path in directory.rglob("*")
                if path.is_file() and path.suffix != ".json"
            ),
            "processes": {
                process["task"]: {
                    key: process[key]
                    for key in ("steps", "history", "activity", "profile", "guests")
                }
                for process in processes
            },
        }
    report = {
        "tensorflow": tf.__version__,
        "settings": asdict(settings),
        "loops": loops,
    }
    return {**report, "ok": not differences(report)}


def to_json(report: Any) -> str:
    """Indented JSON, in which NaN and infinity become `null`.

    `json` alone would write `NaN`, which other readers refuse.
    """
    return json.dumps(_strict(report), indent=2, allow_nan=False)


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strict(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_table(report: Mapping[str, Any]) -> str:
    """The report for people: each guest and event, a column for each process."""
    loops = report["loops"]
    places = _places(report)
    rows: list[Sequence[str]] = [event_header(report)]
    guest = ""
    for label, *cells in event_rows(report):
        if guest not in ("", label):
            rows.append(())
        rows.append(("" if label == guest else label, *cells))
        guest = label
    rows.append(())
    for key, form in RESULTS.items():
        cells = [
            form.format(loops[loop][key]) if task == loops[loop]["chief"] else ""
            for loop, task in places
        ]
        rows.append((key.replace("_", " "), "", *cells))
    lines = aligned(rows, left=2)
    rule = "-" * len(lines[0])
    lines = [lines[0], rule, *lines[1:], rule]
    for loop in loops.values():
        profile = loop["processes"][loop["chief"]]["profile"]
        lines += [
            f"What took longest in {loop['loop']}, {loop['chief']}:",
            profile_table(profile, _MOST_ROWS),
            "",
        ]
    lines += differences(report)
    lines.append(
        "Every guest saw the documented events in every process."
        if report["ok"]
        else "A guest did not see the documented events."
    )
    return "\n".join(lines)


def event_header(report: Mapping[str, Any]) -> list[str]:
    """The names of the columns of `event_rows`."""
    processes = (f"{loop}: {task}" for loop, task in _places(report))
    return ["guest (kind, role)", "event", *processes]


def event_rows(report: Mapping[str, Any]) -> Iterator[list[str]]:
    """Each guest and event, and how often it came in each process."""
    loops = report["loops"]
    guests = [
        loops[loop]["processes"][task]["guests"] for loop, task in _places(report)
    ]
    for name, first in guests[0].items():
        label = f"{name} ({first['kind']}, {first['role']})"
        for event in dict.fromkeys(e for each in guests for e in each[name]["events"]):
            counts = (str(each[name]["events"].get(event, "-")) for each in guests)
            yield [label, event, *counts]


def _places(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    loops = report["loops"]
    return [(loop, task) for loop in loops for task in loops[loop]["processes"]]


def differences(report: Mapping[str, Any]) -> list[str]:
    """One line for each place where a guest did not see the documented events."""
    return [
        f"{name} in {loop}, {task}: {line}"
        for loop, facts in report["loops"].items()
        for task, process in facts["processes"].items()
        for name, guest in process["guests"].items()
        for line in guest["differences"]
    ]
