"""The two runs side by side, as a table and as JSON."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hookbridge.demo.loop_run import TITLES, LoopRun
from hookbridge.demo.settings import DemoSettings
from hookbridge.lifecycle import Host, events_of


def as_dict(settings: DemoSettings, runs: Mapping[Host, LoopRun]) -> dict[str, Any]:
    """Everything the table shows, ready for `json.dump`."""
    import tensorflow as tf

    # The package behind `tf.keras`, which does not always tell its version.
    keras = importlib.import_module(tf.keras.Model.__module__.split(".")[0])
    guests = [_guest(index, runs) for index in range(len(_any(runs).guests))]
    return {
        "tensorflow": tf.__version__,
        "keras": f"{keras.__name__} {keras.__version__}",
        "settings": asdict(settings),
        "loops": {host: _loop(run) for host, run in runs.items()},
        "guests": guests,
        "ok": not any(lines for g in guests for lines in g["differences"].values()),
    }


def _any(runs: Mapping[Host, LoopRun]) -> LoopRun:
    return next(iter(runs.values()))


def _loop(run: LoopRun) -> dict[str, Any]:
    return {
        "loop": TITLES[run.host],
        "stop_step": run.steps,
        "epochs": run.epochs,
        "steps_per_epoch": run.steps_per_epoch,
        "test_accuracy": run.test_accuracy,
        "test_loss": run.test_loss,
        "seconds": run.seconds,
        "directory": str(run.directory),
        "activity": run.activity,
        "history": run.history,
    }


def _guest(index: int, runs: Mapping[Host, LoopRun]) -> dict[str, Any]:
    first = _any(runs).guests[index]
    counts = {host: run.log.counts(first.name) for host, run in runs.items()}
    return {
        "name": first.name,
        "kind": first.kind,
        "events": {
            event.name: {host: counts[host].get(event.name, 0) for host in runs}
            for event in events_of(first.kind)
            if any(event.name in counted for counted in counts.values())
        },
        "files": {host: run.files(run.guests[index]) for host, run in runs.items()},
        "differences": {
            host: run.differences(run.guests[index]) for host, run in runs.items()
        },
    }


def as_table(report: Mapping[str, Any]) -> str:
    """The report for people: each guest and event, then the runs."""
    hosts: list[Host] = list(report["loops"])
    rows: list[Sequence[str]] = []
    for guest in report["guests"]:
        name = f"{guest['name']} ({guest['kind']})"
        for event, counts in guest["events"].items():
            rows.append((name, event, *(str(counts[host]) for host in hosts)))
            name = ""
        if any(guest["files"].values()):
            files = (str(len(guest["files"][host])) for host in hosts)
            rows.append((name, "files written", *files))
        rows.append(())
    for label, key, form in (
        ("stopped at step", "stop_step", "{}"),
        ("epochs", "epochs", "{}"),
        ("test accuracy", "test_accuracy", "{:.2%}"),
        ("test loss", "test_loss", "{:.4f}"),
        ("seconds", "seconds", "{:.1f}"),
    ):
        values = (form.format(report["loops"][host][key]) for host in hosts)
        rows.append((label, "", *values))
    header = ("guest", "event", *(TITLES[host] for host in hosts))
    lines = columns([header, *rows])
    for guest in report["guests"]:
        for host, found in guest["differences"].items():
            lines += [f"{guest['name']} in {TITLES[host]}: {line}" for line in found]
    lines.append(
        "Every guest saw the documented events in both loops."
        if report["ok"]
        else "A guest did not see the documented events."
    )
    return "\n".join(lines)


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: the first row is the header, an empty row an empty line."""
    widths = [max(len(row[i]) for row in rows if row) for i in range(len(rows[0]))]
    lines = [_line(row, widths) for row in rows]
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    return [lines[0], rule, *lines[1:], rule]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.rjust(width) if i >= 2 else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(row, widths, strict=False))
    ]
    return "  ".join(cells).rstrip()
