"""Both loops side by side: as a table, as JSON and as a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace

from hookbridge.ground import compat, lifecycle
from hookbridge.ground.texts.text_table import aligned
from hookbridge.insight.report.account import Account, finite
from hookbridge.insight.report.run_report import (
    COSTS_HEADER,
    Run,
    RunReport,
    as_words,
    cost_rows,
    cost_summary,
    event_header,
    event_rows,
)
from hookbridge.jobs.demo.demo_story import complaints
from hookbridge.jobs.demo.settings import DemoSettings
from hookbridge.testing import differences as compared

_MOST_COSTS = 8  # rows for each loop
_RESULTS = {
    "global_step": "{:.0f}",
    "accuracy": "{:.2%}",
    "loss": "{:.4f}",
    "seconds": "{:.1f}",
}
_GOOD = "Every guest saw the documented events in every process."
_BAD = "A guest did not see the documented events."
_CUT = (
    "An `on_epoch_begin` without `on_epoch_end`: the job ended while that process was "
    "in the epoch."
)


def differences(runs: Sequence[Run], settings: DemoSettings) -> list[str]:
    """Return a line for each place where a guest missed a documented event."""
    return [
        f"{name} in {run.name}, {account.process}: {line}"
        for run in runs
        for account in run.accounts
        for name in account.guests
        for line in _check_guest(name, run, account, settings)
    ]


def _check_guest(
    name: str, run: Run, account: Account, settings: DemoSettings
) -> list[str]:
    """Return what differs between a guest's events and the expected ones."""
    guest, events = account.guests[name], account.events(name)
    in_fit = run.name == "fit"  # its coordinator runs every guest
    if not (in_fit or guest.runs_here):
        return [f"received {len(events)} events, expected none"] if events else []
    if not settings.trainers(run.name):
        expected = lifecycle.expected_events(
            guest.kind,
            "fit" if in_fit else "session",
            steps=int(account.facts["global_step"]),
            steps_per_epoch=settings.steps_per_epoch,
            validation_batches=1,
            only=guest.overridden,
        )
        return compared([lifecycle.Delivery(*event) for event in events], expected)
    return complaints(
        guest.kind,
        events,
        guest.overridden if in_fit else guest.delivered,
        lagging=in_fit,
        is_chief=account.is_chief,
    )


def as_json(runs: Sequence[Run], settings: DemoSettings, faults: Sequence[str]) -> str:
    """Return everything that the table shows."""
    loops = {
        run.name: {
            "loop": run.title,
            **run.accounts[0].facts,
            "processes": {
                account.process: {
                    "profile": account.profile,
                    "guests": {
                        name: {**asdict(guest), "events": account.counts(name)}
                        for name, guest in account.guests.items()
                    },
                }
                for account in run.accounts
            },
        }
        for run in runs
    }
    report = {
        "versions": compat.installed_versions(),
        "settings": asdict(settings),
        "loops": loops,
        "differences": list(faults),
        "ok": not faults,
    }
    return json.dumps(finite(report), indent=2, allow_nan=False)


def as_table(runs: Sequence[Run], faults: Sequence[str]) -> str:
    """Return the report for people: each guest and event, a column for each process."""
    rows: list[Sequence[str]] = [event_header(runs)]
    guest = ""
    for label, *cells in event_rows(runs):
        if guest not in ("", label):
            rows.append(())
        rows.append(("" if label == guest else label, *cells))
        guest = label
    rows.append(())
    columns = [
        _facts(account) if account.is_chief else {}
        for run in runs
        for account in run.accounts
    ]
    for name in columns[0]:
        rows.append((name, "", *(facts.get(name, "") for facts in columns)))
    lines = aligned(rows, left=2)
    rule = "-" * len(lines[0])
    lines = [lines[0], rule, *lines[1:], rule]
    for run in runs:
        costs = [COSTS_HEADER, *cost_rows([run], _MOST_COSTS)]
        lines += [cost_summary(run), *aligned([row[1:] for row in costs], left=2), ""]
    return "\n".join([*lines, *faults, _BAD if faults else _GOOD, *_footnote(runs)])


def _footnote(runs: Sequence[Run]) -> list[str]:
    """Return what explains counts that look wrong, if there are such."""
    accounts = [account for run in runs for account in run.accounts]
    counts = (account.counts(name) for account in accounts for name in account.guests)
    cut = any(count["on_epoch_begin"] > count["on_epoch_end"] > 0 for count in counts)
    return [_CUT] if cut else []


def as_page(
    runs: Sequence[Run], settings: DemoSettings, differences: Sequence[str]
) -> RunReport:
    """Return the page, with the curves of both runs over each other."""
    number = len(runs[0].accounts[0].guests)
    return RunReport(
        title="One list of guests in both training loops",
        summary=f"The same {number} hooks and callbacks trained in both loops. "
        + " ".join(differences or ["Every guest saw the documented events everywhere."])
        + "".join(f" {line}" for line in _footnote(runs)),
        runs=[replace(run, facts=_describe_run(run)) for run in runs],
        settings=as_words(asdict(settings)),
    )


def _facts(account: Account) -> dict[str, str]:
    return {
        key.replace("_", " "): form.format(account.facts[key])
        for key, form in _RESULTS.items()
        if account.facts.get(key) is not None
    }


def _describe_run(run: Run) -> dict[str, str]:
    names = ", ".join(account.process for account in run.accounts)
    return {**_facts(run.accounts[0]), "processes with guests": names}
