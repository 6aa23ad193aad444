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
from hookbridge.migrate.findings import Finding, Report, Unread, sort_key
from hookbridge.migrate.guest_classes import Module
from hookbridge.migrate.names import Names
from hookbridge.migrate.sources import find_files, read
from hookbridge.migrate.target import NEWEST, Target


def scan(paths: Iterable[str | os.PathLike[str]], *, target: str = NEWEST) -> Report:
    """Finds the places that matter for the move of a program to a newer TensorFlow.

    Nothing is executed and TensorFlow is not imported: files are parsed only. A file
    that cannot be read or parsed is reported, and the rest is still scanned.

    Args:
      paths: files and folders; in folders, `*.py` and `*.ipynb` are read.
      target: the version of TensorFlow that the code has to run on.

    Returns:
      All findings, worst verdict first.

    Raises:
      errors.InvalidArgumentError: a path does not exist, or the names of the target
        are not known.
    """
    names_of_target = Target(target)
    modules: list[Module] = []
    unread: list[Unread] = []
    files = 0
    for path in find_files(paths):
        found = read(path)
        if isinstance(found, Unread):
            unread.append(found)
            continue
        files += 1
        modules += [Module(source, Names(source)) for source in found]
    findings: list[Finding] = []
    for module in modules:
        findings += name_findings.find(module.source, module.names, names_of_target)
        findings += behaviour_findings.find(module.source, module.names)
        findings += guest_sites.find(module.source)
    findings += guest_classes.find(modules)
    return Report(target, files, tuple(sorted(findings, key=sort_key)), tuple(unread))
