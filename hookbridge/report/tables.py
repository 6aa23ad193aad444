"""The tables of a report: how often each guest was called, and what that cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hookbridge.profiling import BRIDGE, WAITING
from hookbridge.report.account import Account

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


def event_header(runs: Sequence[Run]) -> list[str]:
    """The names of the columns of `event_rows`."""
    processes = [f"{run.name}: {each.process}" for run in runs for each in run.accounts]
    return ["guest (kind, role)", "event", *processes]


def event_rows(runs: Sequence[Run]) -> Iterator[list[str]]:
    """Each guest and event, and how often it came in each process."""
    accounts = [account for run in runs for account in run.accounts]
    for name in dict.fromkeys(name for each in accounts for name in each.guests):
        (what, *_) = (a.guests[name] for a in accounts if name in a.guests)
        counts = [a.counts(name) if name in a.guests else {} for a in accounts]
        for event in dict.fromkeys(event for each in counts for event in each):
            cells = (str(each.get(event, "-")) for each in counts)
            yield [f"{name} ({what.kind}, {what.role})", event, *cells]


def cost_rows(runs: Sequence[Run], most: int = _MOST_COSTS) -> Iterator[list[str]]:
    """The most expensive events of each run, in its chief's process."""
    for run in runs:
        for row in run.accounts[0].profile["rows"][:most] if run.accounts else ():
            share, seconds, calls = row["share"], row["seconds"], row["calls"]
            yield [
                *(run.name, row["guest"], row["event"], str(calls)),
                f"{1e3 * seconds:.1f}",
                f"{1e6 * seconds / max(calls, 1):.0f}",
                "" if share is None else f"{share:.1%}",
            ]


def cost_summary(run: Run) -> str:
    """The guests' own work, the bridge's own work, the waiting, and a native step."""
    profile: Any = run.accounts[0].profile if run.accounts else {}
    if not profile.get("step_seconds"):
        return ""
    shares = {BRIDGE: 0.0, WAITING: 0.0, "": 0.0}
    for row in profile["rows"]:
        shares[row["guest"] if row["guest"] in shares else ""] += row["share"] or 0.0
    step = 1e3 * profile["step_seconds"]
    return (
        f"{run.title}, {run.accounts[0].process}: {profile['steps']} steps of "
        f"{step:.2f} ms on average. Of that the guests' own methods took "
        f"{shares['']:.1%}, as they do natively, waiting for what TensorFlow computed "
        f"for guests outside of the step {shares[WAITING]:.1%}, and the bridge's own "
        f"work {shares[BRIDGE]:.1%}. A native step was not run: by these numbers it "
        f"would take {step * (1 - shares[BRIDGE]):.2f} ms. The first step is left out, "
        "since it builds graphs."
    )
