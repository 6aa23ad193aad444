"""The report of a run: curves, events in order and over time, costs, versions."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hookbridge.ground import compat
from hookbridge.ground.texts.counted import counted
from hookbridge.insight.guest_profile import BRIDGE, WAITING
from hookbridge.insight.report import charts, event_pictures
from hookbridge.insight.report.account import Account
from hookbridge.insight.report.page import page, table
from hookbridge.insight.report.scalars import Curve, Points, read_curves
from hookbridge.insight.timings import costs

FILE_NAME = "report.html"
_MOST_COSTS = 12  # rows for each run; `hb.profile` has all
COSTS_HEADER = ("run", "guest", "event", "calls", "ms", "us per call", "of the steps")


@dataclass(frozen=True)
class Run:
    """The results of one loop.

    Its curves are read from the files below the directory; `accounts` has the chief's
    first, and `facts` are the first table.
    """

    name: str
    title: str
    directory: Path
    accounts: Sequence[Account] = ()
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RunReport:
    """Everything that the page shows; the curves of its runs lie over each other."""

    title: str
    summary: str
    runs: Sequence[Run]
    settings: Mapping[str, str] = field(default_factory=dict)


def write_html(report: RunReport, directory: str | Path) -> Path:
    """Write `report.html` into a directory, and return its path."""
    path = Path(directory) / FILE_NAME
    path.write_text(as_html(report), encoding="utf-8")
    return path


def as_html(report: RunReport) -> str:
    """Return the page, which needs no server, no network and no script."""
    return page(report.title, _body(report))


def _body(report: RunReport) -> Iterator[str]:
    """Yield the page: facts, curves, events, costs, settings, versions."""
    yield f"<p>{html.escape(report.summary)}</p>"
    names = dict.fromkeys(name for run in report.runs for name in run.facts)
    facts = [[name, *(r.facts.get(name, "") for r in report.runs)] for name in names]
    yield table(facts, ["", *(run.title for run in report.runs)], numbers_from=1)
    yield from _curves(report.runs)
    recorded = [run for run in report.runs if run.accounts]
    if recorded:
        yield from _guests(recorded)
    versions = compat.installed_versions()
    for title, pairs in (("Settings", report.settings), ("Versions", versions)):
        if pairs:
            yield _heading(title, title.lower())
            yield table(list(pairs.items()))


def _guests(recorded: Sequence[Run]) -> Iterator[str]:
    """Yield when and how often guests were called, and what each of them cost."""
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


def _heading(title: str, anchor: str) -> str:
    return f'<h2 id="{anchor}">{title}</h2>'


def _subheading(run: Run, process: str) -> str:
    return f"<h3>{html.escape(f'{run.title}: {process}')}</h3>"


def _curves(runs: Sequence[Run]) -> Iterator[str]:
    """Yield a chart of each curve; those with the same values are drawn once."""
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
    """Return whether the same numbers were written twice, such as to a CSV file."""
    pairs = (([y for _, y in one[run]], [y for _, y in other[run]]) for run in one)
    return all(len(a) == len(b) and np.allclose(a, b, 1e-5, 0) for a, b in pairs)


def _timelines(run: Run) -> Iterator[str]:
    """Yield the timelines of the processes of a run, on one axis."""
    times = [a.started + call.secs for a in run.accounts for call in a.calls] or [0.0]
    for account in run.accounts:
        yield _subheading(run, account.process)
        yield event_pictures.timeline(account, min(times), max(times))


def event_header(runs: Sequence[Run]) -> list[str]:
    """Return the names of the columns of `event_rows`."""
    processes = [
        f"{run.name}: {account.process}" for run in runs for account in run.accounts
    ]
    return ["guest (kind, role)", "event", *processes]


def event_rows(runs: Sequence[Run]) -> Iterator[list[str]]:
    """Yield each guest and event, and how often it came in each process."""
    accounts = [account for run in runs for account in run.accounts]
    for name in dict.fromkeys(name for account in accounts for name in account.guests):
        (facts, *_) = (a.guests[name] for a in accounts if name in a.guests)
        counts = [a.counts(name) if name in a.guests else {} for a in accounts]
        for event in dict.fromkeys(event for count in counts for event in count):
            cells = (str(count.get(event, "-")) for count in counts)
            yield [f"{name} ({facts.kind}, {facts.role})", event, *cells]


def cost_rows(runs: Sequence[Run], most: int = _MOST_COSTS) -> Iterator[list[str]]:
    """Yield the most expensive events of each run, in its chief's process.

    Args:
      runs: the recorded runs; one without accounts has no rows.
      most: the greatest number of events of a run.
    """
    recorded = (run for run in runs if run.accounts)
    for run in recorded:
        for cost in costs(run.accounts[0].profile, most):
            yield [
                run.name,
                cost.guest,
                cost.event,
                str(cost.calls),
                f"{1e3 * cost.seconds:.1f}",
                f"{1e6 * cost.seconds / cost.calls:.0f}",
                "" if cost.share is None else f"{cost.share:.1%}",
            ]


def as_words(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return settings in words, for a page: no brackets, no `None`, no `True`."""
    return {name: _in_words(value) for name, value in settings.items()}


def _in_words(value: object) -> str:
    if value is None or value in ("", (), []):
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_in_words, value))
    return str(value)


def cost_summary(run: Run) -> str:
    """Sum up the guests' work, the bridge's, the waiting, and a native step."""
    profile: Any = run.accounts[0].profile if run.accounts else {}
    if not profile.get("step_seconds"):
        return ""
    shares = {BRIDGE: 0.0, WAITING: 0.0, "": 0.0}
    for row in profile["rows"]:
        shares[row["guest"] if row["guest"] in shares else ""] += row["share"] or 0.0
    step = 1e3 * profile["step_seconds"]
    steps = counted(profile["steps"], "step")
    return (
        f"{run.title}, {run.accounts[0].process}: {steps} of "
        f"{step:.2f} ms on average. {shares['']:.1%} is the guests' own code (the same "
        f"natively), {shares[WAITING]:.1%} is extra TensorFlow work for guests outside "
        f"the step, and {shares[BRIDGE]:.1%} is hookbridge's overhead. Estimated time "
        f"of a native step: {step * (1 - shares[BRIDGE]):.2f} ms (not measured). The "
        "first step is not counted, since it builds graphs."
    )
