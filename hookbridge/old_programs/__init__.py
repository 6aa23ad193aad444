"""Moves TF1 code forward: what a program needs on a newer TensorFlow, and where.

    from hookbridge import old_programs as migrate

    report = migrate.scan(["my_program/"], target="2.21")
    for finding in report.findings:
        print(finding.place, finding.verdict, finding.code, finding.way_out)

    text = migrate.rewrite(source).source

Reading order: `findings` (what comes out), the room `reading` (what the source says),
`target`, `contrib_names`, `private_names` and `fates` (what becomes of a name),
`guests` and `scanning` (all findings of a file); `formats` writes the report.
The rooms `rewriting` and `rewrites` change code; `run` runs programs as they are.
"""

from __future__ import annotations

from hookbridge.old_programs.findings import Finding, Report, Unread
from hookbridge.old_programs.rewrites.registry import REWRITES
from hookbridge.old_programs.rewriting.results import Rewritten
from hookbridge.old_programs.rewriting.rule import RewriteRule
from hookbridge.old_programs.rewriting.source import rewrite
from hookbridge.old_programs.scanning import scan

__all__ = [
    "REWRITES",
    "Finding",
    "Report",
    "RewriteRule",
    "Rewritten",
    "Unread",
    "rewrite",
    "scan",
]
