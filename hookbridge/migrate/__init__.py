"""Moves TF1 code forward: what a program needs on a newer TensorFlow, and where.

    from hookbridge import migrate

    report = migrate.scan(["my_program/"], target="2.21")
    for finding in report.findings:
        print(finding.place, finding.verdict, finding.code, finding.way_out)

Reading order: `findings` (what comes out), `scanning`, `sources`, `names`, `target`,
`rules`, then the four that find: `name_findings`, `behaviour_findings`,
`guest_classes`, `guest_sites`; `formats` and `html` write the report.
"""

from hookbridge.migrate.findings import Finding, Report, Unread
from hookbridge.migrate.rules import RULES, Rule
from hookbridge.migrate.scanning import scan

__all__ = ("RULES", "Finding", "Report", "Rule", "Unread", "scan")
