"""Removed modules: what a file uses of one is one place, and not one for each name."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from hookbridge.ground.groups import grouped
from hookbridge.old_programs.scanning.findings import Finding
from hookbridge.tf1_names.resolution import resolve
from hookbridge.tf1_names.target import Target

_REMOVED = "GONE"


def by_removed_module(findings: Iterable[Finding], target: Target) -> Iterator[Finding]:
    """Yield the findings, with those of a removed module's names as its own.

    A single name of a module keeps its name, which says more.

    Args:
      findings: those of all files.
      target: the TensorFlow that lacks the names.
    """
    all_findings = list(findings)
    modules = [_removed_module(finding, target) for finding in all_findings]
    pairs = list(zip(all_findings, modules, strict=True))
    names = grouped(((finding.file, module), finding.name) for finding, module in pairs)
    for finding, module in pairs:
        if not module or len(set(names[finding.file, module])) == 1:
            yield finding
            continue
        removed = resolve(module, target)
        way_out = finding.way_out if removed is None else removed.way_out
        details = {**finding.details, "module": module}
        yield dataclasses.replace(
            finding, name=module, way_out=way_out, details=details
        )


def _removed_module(finding: Finding, target: Target) -> str:
    """Return the outermost removed module of a name left to a person, or ""."""
    if finding.code != _REMOVED or not finding.person:
        return ""
    parts = finding.name.split(".")
    for end in range(3, len(parts) + 1):
        module = ".".join(parts[:end])
        outcome = resolve(module, target)
        if outcome is not None and outcome.code == _REMOVED:
            return module
    return ""
