"""The report of a run: curves, events in order and over time, costs, versions."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hookbridge.report import charts, story_picture, timeline
from hookbridge.report.page import page, table
from hookbridge.report.scalars import Curve, Points, read_curves
from hookbridge.report.story import story
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
    """Everything that the page shows.

    Attributes:
      title: the title of the page.
      summary: one sentence.
      runs: the runs, whose curves are drawn over each other.
      versions: `{package: version}`.
      settings: `{name: value}` of the run.
    """

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


def as_html(report: RunReport) -> str:
    """The page, which needs no server, no network and no script."""
    style = charts.STYLE + timeline.STYLE + story_picture.STYLE
    return page(report.title, _body(report), style=style)


def _body(report: RunReport) -> Iterator[str]:
    yield f"<p>{html.escape(report.summary)}</p>"
    yield _facts(report.runs)
    yield from _curves(report.runs)
    recorded = [run for run in report.runs if run.accounts]
    if recorded:
        yield '<h2 id="order">Who is called when</h2>'
        yield story_picture.LEGEND
        for run in recorded:
            yield from _stories(run)
        yield '<h2 id="timelines">Over time</h2>'
        yield timeline.LEGEND
        for run in recorded:
            yield from _timelines(run)
        yield '<h2 id="events">How often</h2>'
        yield table(list(event_rows(recorded)), event_header(recorded), numbers_from=2)
        yield '<h2 id="costs">What each guest cost</h2>'
        for run in recorded:
            yield f"<p>{html.escape(cost_summary(run))}</p>"
        yield table(list(cost_rows(recorded)), COSTS_HEADER, numbers_from=3)
    for anchor, title, pairs in (
        ("settings", "Settings", report.settings),
        ("versions", "Versions", report.versions),
    ):
        if pairs:
            yield f'<h2 id="{anchor}">{title}</h2>'
            yield table(list(pairs.items()))


def _facts(runs: Sequence[Run]) -> str:
    names = list(dict.fromkeys(name for run in runs for name in run.facts))
    rows = [[name, *(run.facts.get(name, "") for run in runs)] for name in names]
    return table(rows, ["", *(run.title for run in runs)], numbers_from=1)


def _curves(runs: Sequence[Run]) -> Iterator[str]:
    found = {run.name: read_curves(run.directory) for run in runs}
    names = list(dict.fromkeys(name for curves in found.values() for name in curves))
    if not names:
        return
    yield '<h2 id="curves">Curves</h2>'
    yield charts.legend(list(found))
    drawn: dict[Curve, dict[str, Points]] = {}
    also: dict[Curve, list[str]] = {}
    for curve in names:
        series = {run: curves.get(curve, []) for run, curves in found.items()}
        twin = next((k for k, s in drawn.items() if _same_values(s, series)), None)
        if twin is None:
            drawn[curve] = series
        else:
            also.setdefault(twin, []).append(f"{curve.place}/{curve.name}")
    yield '<div class="charts">'
    for curve, series in drawn.items():
        places = ", also ".join([curve.place, *also.get(curve, [])])
        yield charts.chart(curve.name, series, f"by {curve.axis}, in {places}")
    yield "</div>"


def _same_values(one: Mapping[str, Points], other: Mapping[str, Points]) -> bool:
    """Whether the same numbers were written twice, for example to a CSV file too."""
    return all(
        len(one[run]) == len(other[run])
        and all(
            abs(a - b) <= 1e-5 * abs(a)
            for (_, a), (_, b) in zip(one[run], other[run], strict=True)
        )
        for run in one
    )


def _stories(run: Run) -> Iterator[str]:
    for each in run.accounts:
        yield f"<h3>{html.escape(f'{run.title}: {each.process}')}</h3>"
        yield story_picture.picture(each.timeline, story(each.timeline))


def _timelines(run: Run) -> Iterator[str]:
    """The processes of a run share one axis."""
    drawn = [each.timeline for each in run.accounts]
    times = [t.started + e.secs for t in drawn for e in t.events]
    for each in drawn:
        yield f"<h3>{html.escape(f'{run.title}: {each.process}')}</h3>"
        if times:
            yield timeline.picture(each, starts=min(times), ends=max(times))
