"""How a diagnosis is written: for a reader, or as JSON."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from hookbridge.ground import compat
from hookbridge.ground.imports import extras
from hookbridge.ground.texts.counted import counted
from hookbridge.old_programs.scanning.diagnosis import Diagnosis
from hookbridge.old_programs.scanning.findings import (
    CHANGES,
    COMMENTS,
    Finding,
    num_places,
)
from hookbridge.tf1_names.target import target_in_words

COLUMNS = 100
FIELDS = ("file", "line", "column", "cell", "name", "code", "run", "migrate", "person")


def as_json(diagnosis: Diagnosis) -> str:
    """Return the diagnosis as JSON, indented."""
    report = diagnosis.report
    document = {
        "target": report.target,
        "files": report.files,
        "found": [{f: getattr(row, f) for f in FIELDS} for row in report.findings],
        "unread": list(map(asdict, report.unread)),
        "absent": diagnosis.absent,
        "missing": diagnosis.missing,
        "command": diagnosis.command,
        "folder": diagnosis.folder,
        "left": diagnosis.left,
        "troubles": list(_troubles()),
    }
    return json.dumps(document, indent=2)


def as_text(diagnosis: Diagnosis, *, details: bool = False) -> str:
    """Return what is to be installed, the verdict, and what is left to a person.

    The lines have at most 100 columns.

    Args:
      diagnosis: what was found.
      details: whether the other places follow, with what mends them.
    """
    report = diagnosis.report
    read = f"({counted(report.files, 'file')} read; {target_in_words(report.target)})"
    lines: list[str] = []
    for lack in (*_absent(diagnosis), *diagnosis.missing):
        # A command stays whole.
        lines += textwrap.wrap(f"First: {lack}", COLUMNS, break_on_hyphens=False)
    lines += textwrap.wrap(f"{_verdict(diagnosis)} {read}", COLUMNS)
    for trouble in _troubles():
        lines += textwrap.wrap(f"This machine: {trouble}", COLUMNS)
    for unread in report.unread:
        lines.append(f"{unread.file}  could not be read: {unread.reason}")
    lines += _finding_lines(f for f in report.findings if f.person or details)
    automatic = num_places(f for f in report.findings if not f.person)
    if automatic and not details:
        lines.append(f"`--details` lists {counted(automatic, 'more place')}.")
    return "\n".join(lines)


def _troubles() -> Iterator[str]:
    """Yield what on this machine may stop a program, each with the way out."""
    yield from compat.known_troubles(compat.installed_versions())
    backend = compat.other_backend()
    if backend:
        yield (
            f"KERAS_BACKEND is {backend!r}, and hooks need a Keras that computes with "
            "TensorFlow. Set KERAS_BACKEND=tensorflow for hooks in `fit`; callbacks "
            "and sessions run as they are."
        )


def _absent(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the modules that the program imports and this machine lacks."""
    for name in diagnosis.absent:
        problem = f"the program imports {name}, which is not installed."
        if "." in name:
            problem = (
                f"the program imports {name}, which has no Python file. Build it "
                "first if it is in another language, such as Cython."
            )
        elif name in extras.MODULES:
            problem += f" Install it with {extras.install(extras.MODULES[name][1])}."
        elif os.path.isdir(name) or os.path.isfile(f"{name}.py"):
            problem += (
                " It is in the working directory, where Python looks only with `-m`: "
                "give `doctor -m` the name of the main module."
            )
        yield problem


def _verdict(diagnosis: Diagnosis) -> str:
    """Return whether there is work for a person, as one sentence."""
    has_first = bool(diagnosis.absent or diagnosis.missing)
    if diagnosis.left:
        need = "needs" if diagnosis.left == 1 else "need"
        places = counted(diagnosis.left, "place")
        then = "Then " if has_first else ""
        return f"{then}{places} {need} manual work."
    nothing = "Then nothing" if has_first else "Nothing"
    findings = diagnosis.report.findings
    if not findings:
        return f"{nothing} is missing."
    written = num_places(f for f in findings if f.rewrite == CHANGES)
    changes = f"changes {counted(written, 'place')}" if written else "changes nothing"
    # What `run` does and no rule can write, such as `inspect.getargspec`.
    by_run = num_places(f for f in findings if f.rewrite == COMMENTS)
    if by_run:
        number = counted(by_run, "more place" if written else "place")
        changes += f" and comments {number}, where only `run` knows what to do"
    where = f", given in {diagnosis.folder}," if diagnosis.folder else ""
    return (
        f"{nothing} needs manual work: `{diagnosis.command}`{where} runs it as it is. "
        f"`hookbridge migrate rewrite` {changes}."
    )


def _finding_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield the findings by what is said of them, each with its places."""
    places: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for finding in findings:
        file = f"{finding.file}:cell {finding.cell}" if finding.cell else finding.file
        texts = (finding.name, finding.run, finding.migrate, finding.person)
        by_file = places.setdefault(texts, {})
        by_file.setdefault(file, []).append(str(finding.line))
    for (name, run, migrate, person), by_file in places.items():
        yield name
        files = (f"{f}:{', '.join(dict.fromkeys(n))}" for f, n in by_file.items())
        titles = {
            "in": "; ".join(files),
            "run": run,
            "migrate": migrate,
            "instead": person,
        }
        for title, text in titles.items():
            yield from textwrap.wrap(
                text,
                COLUMNS,
                initial_indent=f"    {title:9}",
                subsequent_indent=" " * 13,
                break_long_words=False,
                break_on_hyphens=False,
            )
