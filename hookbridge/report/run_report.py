"""The report of a run: curves, events in order and over time, costs, versions."""

from __future__ import annotations

import html
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hookbridge.report import charts, event_pictures
from hookbridge.report.page import page, table
from hookbridge.report.scalars import Curve, Points, read_curves
from hookbridge.report.tables import (
    COSTS_HEADER,
    Run,
    cost_rows,
    cost_summary,
    event_header,
    event_rows,
)

FILE_NAME = "report.html"


@dataclass(frozen=True)
class RunReport:
    """Everything that the page shows; the curves of its runs lie over each other."""

    title: str
    summary: str
    runs: Sequence[Run]
    versions: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)


def write_html(report: RunReport, directory: str | Path) -> Path:
    """Writes `report.html` into a directory, and returns its path."""
    path = Path(directory) / FILE_NAME
    path.write_text(as_html(report), encoding="utf-8")
    return path


def open_report(path: str | Path) -> str:
    """Opens a page in the default browser, and says so; no browser is no error."""
    address = Path(path).resolve().as_uri()
    if webbrowser.open(address):
        return f"Opened {address}"
    return (
        f"No browser was found to open {address} in: `$BROWSER` can name one. The file "
        "needs nothing else, so it can be copied to where there is one."
    )


def as_html(report: RunReport) -> str:
    """The page, which needs no server, no network and no script."""
    return page(report.title, _body(report))


def _body(report: RunReport) -> Iterator[str]:
    yield f"<p>{html.escape(report.summary)}</p>"
    names = dict.fromkeys(name for run in report.runs for name in run.facts)
    facts = [[name, *(r.facts.get(name, "") for r in report.runs)] for name in names]
    yield table(facts, ["", *(run.title for run in report.runs)], numbers_from=1)
    yield from _curves(report.runs)
    recorded = [run for run in report.runs if run.accounts]
    if recorded:
        yield _heading("Who is called when", "order") + event_pictures.ORDER_LEGEND
        for run in recorded:
            for account in run.accounts:
                yield _subheading(run, account.process)
                yield event_pictures.order_picture(account)
        yield _heading("Over time", "timelines") + event_pictures.TIMELINE_LEGEND
        for run in recorded:
            yield from _timelines(run)
        yield _heading("How often", "events")
        yield table(list(event_rows(recorded)), event_header(recorded), numbers_from=2)
        yield _heading("What each guest cost", "costs")
        for run in recorded:
            yield f"<p>{html.escape(cost_summary(run))}</p>"
        yield table(list(cost_rows(recorded)), COSTS_HEADER, numbers_from=3)
    for title, pairs in (("Settings", report.settings), ("Versions", report.versions)):
        if pairs:
            yield _heading(title, title.lower())
            yield table(list(pairs.items()))


def _heading(title: str, anchor: str) -> str:
    return f'<h2 id="{anchor}">{title}</h2>'


def _subheading(run: Run, process: str) -> str:
    return f"<h3>{html.escape(f'{run.title}: {process}')}</h3>"


def _curves(runs: Sequence[Run]) -> Iterator[str]:
    by_run = {run.name: read_curves(run.directory) for run in runs}
    names = list(dict.fromkeys(name for curves in by_run.values() for name in curves))
    if not names:
        return
    drawn: dict[Curve, dict[str, Points]] = {}
    places: dict[Curve, list[str]] = {}
    for curve in names:
        series = {run: curves.get(curve, []) for run, curves in by_run.items()}
        twin = next((k for k, s in drawn.items() if _same_values(s, series)), None)
        if twin is None:
            drawn[curve], places[curve] = series, [curve.place]
        else:
            places[twin].append(f"{curve.place}/{curve.name}")
    yield _heading("Curves", "curves") + charts.legend(list(by_run))
    yield '<div class="charts">'
    for curve, series in drawn.items():
        where = ", also ".join(places[curve])
        yield charts.chart(curve.name, series, f"by {curve.axis}, in {where}")
    yield "</div>"


def _same_values(one: Mapping[str, Points], other: Mapping[str, Points]) -> bool:
    """Whether the same numbers were written twice, for example to a CSV file too."""
    pairs = (([y for _, y in one[run]], [y for _, y in other[run]]) for run in one)
    return all(len(a) == len(b) and np.allclose(a, b, 1e-5, 0) for a, b in pairs)


def _timelines(run: Run) -> Iterator[str]:
    """The processes of a run share one axis."""
    times = [a.started + call.secs for a in run.accounts for call in a.calls] or [0.0]
    for account in run.accounts:
        yield _subheading(run, account.process)
        yield event_pictures.timeline(account, min(times), max(times))
