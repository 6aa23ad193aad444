"""A report as text, JSON, SARIF or HTML."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hookbridge import __version__
from hookbridge.migrate.findings import CODES, VERDICTS, Finding, Report
from hookbridge.report.page import page, table

MEANINGS = {
    "manual": "a person has to do it",
    "assisted": "the way out is known; a person checks it",
    "bridge": "hookbridge carries it at run time",
    "auto": "a plain rename",
    "fine": "runs as it is",
}
# https://docs.oasis-open.org/sarif/sarif/v2.1.0/: error, warning, note or none.
_LEVELS = {
    "manual": "error",
    "assisted": "warning",
    "bridge": "note",
    "auto": "warning",
    "fine": "none",
}


def as_text(report: Report) -> str:
    """Counts, then the findings, worst first, each with its way out."""
    lines = [f"{report.files} files read; target TensorFlow {report.target}."]
    for verdict, count in report.verdicts.items():
        if count:
            lines.append(f"{count:6} {verdict:<9} {MEANINGS[verdict]}")
    for verdict in VERDICTS:
        findings = [f for f in report.findings if f.verdict == verdict]
        if findings:
            lines += ["", f"{verdict}: {MEANINGS[verdict]}"]
            codes = Counter(f.code for f in findings)
            lines.append("  " + ", ".join(f"{c} {n}" for c, n in codes.most_common()))
            lines += [line for f in findings for line in _lines(f)]
    if report.unread:
        lines += ["", f"{len(report.unread)} files could not be read:"]
        lines += [f"  {u.file}: {u.reason}" for u in report.unread]
    if not report.findings and not report.unread:
        lines.append("Nothing found.")
    return "\n".join(lines)


def _lines(finding: Finding) -> list[str]:
    lines = [f"  {finding.place}  {finding.code}  {finding.name}"]
    lines.append(f"      {finding.message} -> {finding.way_out}")
    return lines


def as_json(report: Report) -> str:
    """The report as JSON, indented."""
    return json.dumps(report.to_json(), indent=2)


def as_html(report: Report) -> str:
    """The report as a page that needs no other files: counts, then the findings."""
    counts = [(str(n), v, MEANINGS[v]) for v, n in report.verdicts.items() if n]
    rows = [
        (f.place, f.verdict, f.code, f"{f.name}: {f.message}", f.way_out)
        for f in report.findings
    ]
    parts = [table(counts), "<h2>Findings</h2>"]
    parts.append(table(rows, ("place", "verdict", "code", "what", "way out")))
    if report.unread:
        unread = [(u.file, u.reason) for u in report.unread]
        parts += ["<h2>Files that could not be read</h2>", table(unread)]
    title = f"What {report.files} files need on TensorFlow {report.target}"
    return page(title, parts)


def as_sarif(report: Report) -> str:
    """The report as SARIF 2.1.0, for code hosts and editors."""
    results = [_result(finding) for finding in report.findings]
    notes = [
        {
            "level": "error",
            "message": {"text": unread.reason},
            "locations": [{"physicalLocation": _file(unread.file)}],
        }
        for unread in report.unread
    ]
    driver = {
        "name": "hookbridge",
        "version": __version__,
        "rules": [
            {"id": name, "shortDescription": {"text": code.message}}
            for name, code in sorted(CODES.items())
        ],
    }
    run: dict[str, Any] = {"tool": {"driver": driver}, "results": results}
    if notes:
        run["invocations"] = [
            {"executionSuccessful": True, "toolExecutionNotifications": notes}
        ]
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2)


def _result(finding: Finding) -> dict[str, Any]:
    region = {"startLine": finding.line, "startColumn": finding.column}
    return {
        "ruleId": finding.code,
        "level": _LEVELS[finding.verdict],
        "message": {
            "text": f"{finding.name}: {finding.message} Way out: {finding.way_out}"
        },
        "locations": [{"physicalLocation": {**_file(finding.file), "region": region}}],
        "properties": {"verdict": finding.verdict, "cell": finding.cell},
    }


def _file(name: str) -> dict[str, Any]:
    return {"artifactLocation": {"uri": name.replace("\\", "/")}}
