"""Which page of the documentation tells more about a refusal: one table.

The site has no public address, but every installation has the pages. So a message
names the command that prints the page.
"""

from __future__ import annotations

import re

# Reason -> page and heading; `tests/test_pages.py` checks that they exist.
PAGES = {
    "a hook and a callback at once": "docs/writing-guests.md",
    "background saves": "docs/restarts.md#saves-in-the-background",
    "callback in a session": "docs/callbacks-in-sessions.md"
    "#every-callback-of-every-keras",
    "callbacks under a strategy": "docs/estimator.md#hooks-and-callbacks",
    "epochs in a session": "docs/callbacks-in-sessions.md#what-it-is-called-for",
    "estimator": "docs/estimator.md",
    "estimator in a cluster": "docs/estimator.md#clusters-and-strategies",
    "guest without events": "docs/why-and-limits.md#nothing-is-left-out-silently",
    "hook in fit": "docs/hook-support.md#why-a-hook-is-refused",
    "hook made of tensors": (
        "docs/hook-support.md#hooks-whose-constructor-takes-tensors"
    ),
    "how a run ends": "docs/lifecycle.md#how-a-run-ends",
    "live session": "docs/hook-support.md#what-to-know",
    "own loops": "docs/own-loops.md",
    "logs in a session": "docs/callbacks-in-sessions.md#what-it-finds-in-logs",
    "model definition file": "docs/examples.md",
    "model in a session": "docs/callbacks-in-sessions.md#what-selfmodel-is",
    "parameter servers": "docs/parameter-server.md",
    "reference runs": "docs/reference-runs.md",
    "several workers": "docs/multi-worker.md",
    "towers": "docs/towers.md",
    "v1 graph in fit": "docs/hook-support.md#hooks-in-fit-of-a-v1-graph",
}


def pointer(row: str) -> str:
    """Return the sentence at the end of a message that leads to the page of a row."""
    return f"See `hookbridge docs {PAGES[row].removeprefix('docs/')}`."


def anchor(heading: str) -> str:
    """Return the address of a heading in its page, as GitHub and the site make it."""
    plain = re.sub(r"[^\w\s-]", "", heading.lstrip("# ").lower())
    return re.sub(r"\s", "-", plain.strip())
