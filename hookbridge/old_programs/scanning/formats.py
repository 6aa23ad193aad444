"""A report as text, JSON, SARIF or HTML."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from hookbridge import __version__
from hookbridge.ground.texts.counted import counted
from hookbridge.insight.report.page import page, table
from hookbridge.old_programs.scanning.findings import CODES, Report
from hookbridge.tf1_names.target import target_in_words

_MEANINGS = {
    "manual": "a person has to do it",
    "assisted": "the replacement is known; a person checks the result",
    "bridge": "hookbridge supports it at run time",
    "auto": "`migrate rewrite` changes it",
    "fine": "it runs as it is",
}
# Verdict -> its level in SARIF 2.1.0, which has four.
_LEVELS = {
    "manual": "error",
    "assisted": "warning",
    "bridge": "note",
    "auto": "warning",
    "fine": "none",
}


def as_text(report: Report) -> str:
    """Return the count, then the findings, worst first, each with its way out."""
    lines = [f"{counted(report.files, 'file')} read; {target_in_words(report.target)}."]
    counts = {verdict: count for verdict, count in report.verdicts.items() if count}
    for verdict, count in counts.items():
        lines.append(f"{count:6} {verdict:<9} {_MEANINGS[verdict]}")
    for verdict in counts:
        findings = [f for f in report.findings if f.verdict == verdict]
        codes = Counter(f.code for f in findings)
        lines += ["", f"{verdict}: {_MEANINGS[verdict]}"]
        lines.append("  " + ", ".join(f"{c} {n}" for c, n in codes.most_common()))
        for f in findings:
            lines.append(f"  {f.place}  {f.code}  {f.name}")
            lines.append(f"      {f.message} -> {f.way_out}")
    if report.unread:
        lines += ["", f"{counted(len(report.unread), 'file')} could not be read:"]
        lines += [f"  {u.file}: {u.reason}" for u in report.unread]
    if report.findings:
        code = report.findings[0].code.lower()
        lines += ["", f"`hookbridge docs codes#{code}` explains a code."]
    elif not report.unread:
        lines.append("Nothing found.")
    return "\n".join(lines)


def as_json(report: Report) -> str:
    """Return the report as JSON, indented."""
    return json.dumps(report.to_json(), indent=2)


def as_html(report: Report) -> str:
    """Return the report as a page by itself: counts, then the findings."""
    counts = [(str(n), v, _MEANINGS[v]) for v, n in report.verdicts.items() if n]
    rows = [
        (f.place, f.verdict, f.code, f"{f.name}: {f.message}", f.way_out)
        for f in report.findings
    ]
    parts = [table(counts), "<h2>Findings</h2>"]
    parts.append(table(rows, ("place", "verdict", "code", "what", "instead")))
    if report.unread:
        unread = [(u.file, u.reason) for u in report.unread]
        parts += ["<h2>Files that could not be read</h2>", table(unread)]
    need = "needs" if report.files == 1 else "need"
    title = f"What {counted(report.files, 'file')} {need} on TensorFlow {report.target}"
    return page(title, parts)


def as_sarif(report: Report) -> str:
    """Return the report as SARIF 2.1.0, for code hosts and editors."""
    results = []
    for f in report.findings:
        text = f"{f.name}: {f.message} Instead: {f.way_out}"
        region = {"startLine": f.line, "startColumn": f.column}
        if f.cell:
            # The lines of a cell are not those of the file.
            text, region = f"cell {f.cell}, line {f.line}: {text}", {"startLine": 1}
        results.append(_result(f.code, _LEVELS[f.verdict], text, f.file, region))
    # A file that could not be read is an error in its first line.
    rules = {name: code.message for name, code in CODES.items()}
    rules["UNREAD"] = "The file could not be read."
    for unread in report.unread:
        first = {"startLine": 1}
        results.append(_result("UNREAD", "error", unread.reason, unread.file, first))
    driver = {
        "name": "hookbridge",
        "version": __version__,
        "rules": [
            {
                "id": name,
                "shortDescription": {"text": rules[name]},
                "help": {
                    "text": f"`hookbridge docs codes#{name.lower()}` explains it."
                },
            }
            for name in sorted(rules)
        ],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2)


def _result(
    code: str, level: str, text: str, file: str, region: dict[str, int]
) -> dict[str, Any]:
    path = PurePath(file)
    is_whole = path.is_absolute()
    uri = Path(path).as_uri() if is_whole else quote(os.fsencode(path.as_posix()))
    location = {"artifactLocation": {"uri": uri}, "region": region}
    locations = [{"physicalLocation": location}]
    result: dict[str, Any] = {"ruleId": code, "level": level, "locations": locations}
    return {**result, "message": {"text": text}}


# Name of a format -> what writes a report in it.
WRITERS: dict[str, Callable[[Report], str]] = {
    "text": as_text,
    "json": as_json,
    "sarif": as_sarif,
    "html": as_html,
}
