"""A report as one HTML file that needs no other files."""

from __future__ import annotations

import html

from hookbridge.migrate.findings import Report
from hookbridge.migrate.formats import MEANINGS
from hookbridge.report.page import page

_STYLE = """
table { width: 100%; }
.manual { color: #c0392b; } .assisted { color: #b9770e; } .bridge { color: #2471a3; }
.auto { color: #1e8449; } .fine { color: #777; }
"""


def as_html(report: Report) -> str:
    """The report as a page: counts, then a table of the findings, worst first."""
    counts = "".join(
        f'<tr><td>{count}</td><td class="{verdict}">{verdict}</td>'
        f"<td>{MEANINGS[verdict]}</td></tr>"
        for verdict, count in report.verdicts.items()
        if count
    )
    rows = "".join(
        f"<tr><td><code>{html.escape(f.place)}</code></td>"
        f'<td class="{f.verdict}">{f.verdict}</td><td>{f.code}</td>'
        f"<td><code>{html.escape(f.name)}</code><br>{html.escape(f.message)}</td>"
        f"<td>{html.escape(f.way_out)}</td></tr>"
        for f in report.findings
    )
    unread = "".join(
        f"<tr><td><code>{html.escape(u.file)}</code></td>"
        f"<td>{html.escape(u.reason)}</td></tr>"
        for u in report.unread
    )
    title = f"What {report.files} files need on TensorFlow {report.target}"
    parts = [
        f"<table>{counts}</table>",
        "<h2>Findings</h2><table><tr><th>place</th><th>verdict</th><th>code</th>",
        f"<th>what</th><th>way out</th></tr>{rows}</table>",
    ]
    if unread:
        parts.append(f"<h2>Files that could not be read</h2><table>{unread}</table>")
    return page(title, parts, style=_STYLE)
