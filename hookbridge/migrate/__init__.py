"""Moves TF1 code forward: what a program needs on a newer TensorFlow, and where.

    from hookbridge import migrate

    report = migrate.scan(["my_program/"], target="2.21")
    for finding in report.findings:
        print(finding.place, finding.verdict, finding.code, finding.way_out)

    text = migrate.rewrite(source).source

Reading order: `findings` (what comes out), the room `reading` (what the source says),
`target`, `contrib_names`, `private_names` and `fates` (what becomes of a name),
`guests` and `scanning` (all findings of a file); `formats` writes the report.
The rooms `rewriting` and `rewrites` change code.
"""

from __future__ import annotations

from hookbridge.migrate.findings import Finding, Report, Unread
from hookbridge.migrate.rewrites.registry import REWRITES
from hookbridge.migrate.rewriting.results import Rewritten
from hookbridge.migrate.rewriting.rule import RewriteRule
from hookbridge.migrate.rewriting.source import rewrite
from hookbridge.migrate.scanning import scan

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
