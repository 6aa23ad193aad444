"""Scans files for hooks, callbacks, Estimators and names that the target lacks."""

from __future__ import annotations

import os
from collections.abc import Iterable

from hookbridge.migrate import (
    behaviour_findings,
    guest_classes,
    guest_sites,
    name_findings,
)
from hookbridge.migrate.findings import Finding, Report, sort_key
from hookbridge.migrate.reading.modules import Module
from hookbridge.migrate.reading.programs import Place, read_programs
from hookbridge.migrate.target import NEWEST, Target


def lacks(module: Module, place: Place, target: Target) -> list[Finding]:
    """What the target lacks of one module, by line."""
    findings = list(name_findings.find(module, place, target))
    findings += behaviour_findings.find(module, place, target)
    return sorted(findings, key=lambda f: (f.cell, f.line, f.column))


def scan(paths: Iterable[str | os.PathLike[str]], *, target: str = NEWEST) -> Report:
    """Finds the places that matter for the move of a program to a newer TensorFlow.

    Nothing is executed and TensorFlow is not imported: files are parsed only. A file
    that cannot be read or parsed is reported, and the rest is still scanned. What a
    file means may follow from the files of its program; these are read, too.

    Args:
      paths: files and folders; in folders, `*.py` and `*.ipynb` are read.
      target: the version of TensorFlow that the code has to run on.

    Returns:
      All findings in these files, worst verdict first.

    Raises:
      errors.InvalidArgumentError: a path does not exist, or the names of the target
        are not known.
    """
    names_of_target = Target(target)
    programs, unread = read_programs(paths)
    findings: list[Finding] = []
    for module in programs.given:
        findings += lacks(module, programs.place(module), names_of_target)
        findings += guest_sites.find(module)
    guests = guest_classes.Guests(programs.modules)
    findings += guest_classes.find(guests, programs.given)
    ordered = tuple(sorted(findings, key=sort_key))
    return Report(target, len(programs.given), ordered, tuple(unread))
