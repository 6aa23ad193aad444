"""Moves TF1 code forward: what a program needs on a newer TensorFlow, and where.

    import hookbridge as hb

    report = hb.old_programs.scan(["my_program/"], target="2.21")
    for finding in report.findings:
        print(finding.place, finding.verdict, finding.code, finding.way_out)

    text = hb.old_programs.rewrite(source).source

Reading order, each room on the ones before it: `reading` (what the source of a program
says), `scanning` (what it needs, and where); then `rewriting` (changes code) and `run`
(runs programs as they are). What becomes of a name of TensorFlow 1 is in
`hookbridge/tf1_names/`.
"""

from __future__ import annotations

from hookbridge.old_programs.reading.one_file.modules import Unread
from hookbridge.old_programs.rewriting.engine.results import Rewritten
from hookbridge.old_programs.rewriting.engine.rule import RewriteRule
from hookbridge.old_programs.rewriting.registry import REWRITES
from hookbridge.old_programs.rewriting.text import rewrite
from hookbridge.old_programs.scanning.findings import Finding, Report
from hookbridge.old_programs.scanning.scan import scan

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
