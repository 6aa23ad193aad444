"""How a diagnosis is written: for a reader, or as JSON."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from hookbridge.ground import compat, extras
from hookbridge.old_programs.names.target import said
from hookbridge.old_programs.scanning.diagnosis import Diagnosis
from hookbridge.old_programs.scanning.findings import Finding

COLUMNS = 100
FIELDS = ("file", "line", "column", "cell", "name", "code", "run", "migrate", "person")


def as_json(diagnosis: Diagnosis) -> str:
    """The diagnosis as JSON, indented."""
    findings = [{f: getattr(one, f) for f in FIELDS} for one in diagnosis.found]
    rest = {**asdict(diagnosis), "found": findings, "left": diagnosis.left}
    return json.dumps(rest, indent=2)


def as_text(diagnosis: Diagnosis, *, details: bool = False) -> str:
    """The verdict, then what is left to a person, in 100 columns.

    Args:
      diagnosis: what was found.
      details: whether the other places follow, with what mends them.
    """
    files = _counted(diagnosis.files, "file")
    read = f"({files} read; {said(diagnosis.target)})"
    lines = textwrap.wrap(f"{_verdict(diagnosis)} {read}", COLUMNS)
    for trouble in _troubles(diagnosis):
        lines += textwrap.wrap(f"This machine: {trouble}", COLUMNS)
    for unread in diagnosis.unread:
        lines.append(f"{unread.file}  could not be read: {unread.reason}")
    lines += _listed(one for one in diagnosis.found if one.person or details)
    mended = sum(not one.person for one in diagnosis.found)
    if mended and not details:
        lines.append(f"`--details` lists {_counted(mended, 'place')} more.")
    return "\n".join(lines)


def _troubles(diagnosis: Diagnosis) -> Iterator[str]:
    """What this machine lacks, each with the way out."""
    yield from compat.known_troubles(compat.installed_versions())
    for name in diagnosis.absent:
        what = f"the program imports {name}, which is not installed."
        if "." in name:
            what = (
                f"the program imports {name}, of which there is no file of Python. "
                "Build it first, if it is in another language, such as Cython."
            )
        elif name in extras.MODULES:
            what += f" Install it with {extras.install(extras.MODULES[name][1])}."
        elif os.path.isdir(name) or os.path.isfile(f"{name}.py"):
            what += (
                " The working directory has it, where Python looks with `-m` alone: "
                "give `doctor -m` the name of the main module."
            )
        yield what
    yield from diagnosis.missing


def _verdict(diagnosis: Diagnosis) -> str:
    """Whether there is work for a person, as one sentence."""
    if diagnosis.left:
        is_one = diagnosis.left == 1
        need = "needs" if is_one else "need"
        return f"{_counted(diagnosis.left, 'place')} {need} manual work."
    names = " and ".join(diagnosis.absent)
    once = f", once {names} can be imported" if names else ""
    if not diagnosis.found:
        return f"Nothing is missing{once}."
    # What `run` does and no rule can write, such as `scipy.misc.imread`.
    by_run = sum(one.verdict == "manual" for one in diagnosis.found)
    changes = f"changes {_counted(len(diagnosis.found) - by_run, 'place')}"
    if by_run:
        changes += f" and leaves {_counted(by_run, 'place')} to you, with a comment"
    where = f", given in {diagnosis.folder}," if diagnosis.folder else ""
    return (
        f"Nothing needs manual work{once}: `{diagnosis.command}`{where} runs it as it "
        "is. "
        f"`hookbridge migrate rewrite` {changes}."
    )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _listed(findings: Iterable[Finding]) -> Iterator[str]:
    """The findings by what is said of them, each with its places."""
    places: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for one in findings:
        file = f"{one.file}:cell {one.cell}" if one.cell else one.file
        by_file = places.setdefault((one.name, one.run, one.migrate, one.person), {})
        by_file.setdefault(file, []).append(str(one.line))
    for (name, run, migrate, person), by_file in places.items():
        yield name
        files = (f"{f}:{', '.join(dict.fromkeys(n))}" for f, n in by_file.items())
        titles = {"in": "; ".join(files), "run": run, "migrate": migrate, "you": person}
        for title, text in titles.items():
            yield from textwrap.wrap(
                text,
                COLUMNS,
                initial_indent=f"    {title:9}",
                subsequent_indent=" " * 13,
                break_long_words=False,
                break_on_hyphens=False,
            )
