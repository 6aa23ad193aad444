"""Scans files for hooks, callbacks, Estimators and names that the target lacks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from hookbridge.migrate import behaviour_findings, guest_classes, guest_sites
from hookbridge.migrate.fates import fate
from hookbridge.migrate.findings import Finding, Report, sort_key
from hookbridge.migrate.reading.modules import Module
from hookbridge.migrate.reading.names import Import, as_v1, canonical, imports, uses
from hookbridge.migrate.reading.programs import Place, read_programs
from hookbridge.migrate.target import NEWEST, Target


def names(module: Module, place: Place, target: Target) -> Iterator[Finding]:
    """Every use of a TensorFlow name that the target lacks.

    What the program writes itself, and what it does without, is not reported.
    """
    names, nodes = module.names, module.nodes
    for starred in names.starred:
        if canonical(starred).partition(".")[0] in ("tf", "tensorflow"):
            yield module.finding(module.tree, "STAR_IMPORT", f"{starred}.*", "")
    is_old, meaning = place.means_old, place.meaning
    own = tuple(f"{name}." for name in meaning.written)
    flags: set[str] = set()
    for node, name in uses(nodes, names):
        if ".FLAGS." in name:
            # One row for the flags, however many of them the file reads.
            name = name[: name.index(".FLAGS.") + len(".FLAGS")]
            if name in flags:
                continue
        if name.endswith(".FLAGS"):
            flags.add(name)
        if id(node) in module.guarded or f"{name}.".startswith(own):
            continue
        outcome = fate(name, target)
        if is_old and outcome is not None and outcome.code == "ESTIMATOR":
            outcome = fate(as_v1(name), target) or outcome
        if outcome is not None:
            yield module.finding(node, outcome.code, name, outcome.way_out)
    alone = module.evidence.old or module.evidence.leftover
    imported = (one for node in nodes for one in imports(node))
    wholes = (one.node for one in imported if _is_of_tensorflow(one))
    first = next(wholes, None)
    if is_old and not alone and meaning.old and first is not None:
        way = "`import tensorflow.compat.v1 as tf`"
        yield module.finding(first, "V1_FILE", f"TensorFlow 1: {meaning.old}", way)


def _is_of_tensorflow(one: Import) -> bool:
    """Whether it imports TensorFlow itself, or a name from there."""
    return getattr(one.node, "module", one.full) == "tensorflow"


def lacks(module: Module, place: Place, target: Target) -> list[Finding]:
    """What the target lacks of one module, by line."""
    findings = list(names(module, place, target))
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
