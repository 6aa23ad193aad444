"""The demo's report as an HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookbridge import compat
from hookbridge.demo.report import (
    RESULTS,
    TIMELINES,
    differences,
    event_header,
    event_rows,
)
from hookbridge.report.run_report import Run, RunReport, Table
from hookbridge.report.timeline import Timeline

_MOST_COSTS = 12  # rows for each loop; `guests.profile.json` has all


def html_report(report: Mapping[str, Any]) -> RunReport:
    """The page for a result of `report.as_dict`, with the curves of the runs."""
    directory = Path(report["settings"]["model_dir"])
    runs = []
    for loop, facts in report["loops"].items():
        files = sorted((directory / loop / TIMELINES).glob("*.json"))
        runs.append(
            Run(
                name=loop,
                title=facts["loop"],
                directory=directory / loop,
                timelines=[Timeline.load(file) for file in files],
                facts={
                    "Keras": facts["keras"],
                    **{
                        key.replace("_", " "): form.format(facts[key])
                        for key, form in RESULTS.items()
                    },
                    "processes with guests": ", ".join(facts["processes"]),
                },
            )
        )
    guests = next(iter(report["loops"].values()))["processes"]
    number = len(next(iter(guests.values()))["guests"])
    found = differences(report)
    return RunReport(
        title="One list of guests in both training loops",
        summary=f"The same {number} hooks and callbacks trained in both loops. "
        + (" ".join(found) or "Every guest saw the documented events everywhere."),
        runs=runs,
        events=Table(event_header(report), list(event_rows(report)), numbers_from=2),
        costs=_costs(report["loops"]),
        versions=compat.installed_versions(),
        settings={key: str(value) for key, value in report["settings"].items()},
    )


def _costs(loops: Mapping[str, Any]) -> Table:
    """The most expensive events of guests in each loop, in the chief's process."""
    rows = []
    for loop, facts in loops.items():
        for row in facts["processes"][facts["chief"]]["profile"]["rows"][:_MOST_COSTS]:
            share = row["share"]
            rows.append(
                (
                    loop,
                    row["guest"],
                    row["event"],
                    str(row["calls"]),
                    f"{1e3 * row['seconds']:.1f}",
                    f"{1e6 * row['seconds'] / max(row['calls'], 1):.0f}",
                    "" if share is None else f"{share:.1%}",
                )
            )
    header = ("loop", "guest", "event", "calls", "ms", "us per call", "share of steps")
    return Table(header, rows, numbers_from=3)
