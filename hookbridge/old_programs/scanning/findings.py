"""What a scan returns: findings, each with a verdict, and the report of all."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from hookbridge.old_programs.reading.one_file.modules import Module, Unread
from hookbridge.tf1_names.target import table


class Code(NamedTuple):
    """One reason code."""

    verdict: str  # see `Finding`
    message: str  # what breaks, in a sentence
    run: str = ""  # what `hookbridge run` does about it; empty if nothing


CODES = {name: Code(*row) for name, row in table("codes").items()}

# What a rewrite does at the place of a finding, where it does something.
CHANGES, COMMENTS = "changes", "comments"
# What it leaves as it is without a word: nobody can tell from a list whether a private
# name is still there, and installed packages are not the program's.
_KEPT = frozenset({"PRIVATE", "OLD_LIBRARY", "LIBRARY_LOSS"})
# Where nobody knows whether the object is of the library.
_UNSURE = frozenset({"LOST_METHOD"})
# Worst first: from the most work for a person to none.
VERDICTS = ("manual", "assisted", "bridge", "auto", "fine")


@dataclass(frozen=True)
class Finding:
    """One place in the code that matters for the move to the target TensorFlow.

    Attributes:
      file: path as it was given or found.
      line: 1-based line of the file, or of the cell in a notebook.
      column: 1-based, in characters.
      code: the rule's reason code, such as `ESTIMATOR`.
      verdict: "manual" (a person has to do it), "assisted" (a rule rewrites it, a
        person checks), "bridge" (hookbridge supports it at run time), "auto" (a
        rule rewrites it) or "fine" (runs as it is).
      name: what was found, as a dotted name: `tf.estimator.Estimator`.
      message: what breaks on the target, in a sentence.
      way_out: what to write or do.
      cell: 1-based number of the notebook's cell; 0 for a file of Python.
      details: the events that a guest class overrides, and the like.
    """

    file: str
    line: int
    column: int
    code: str
    verdict: str
    name: str
    message: str
    way_out: str
    cell: int = 0
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """`file:line`, or `file:cell N:line` in a notebook."""
        cell = f"cell {self.cell}:" if self.cell else ""
        return f"{self.file}:{cell}{self.line}"

    @property
    def run(self) -> str:
        """What `hookbridge run` does about it; empty if nothing."""
        return CODES[self.code].run

    @property
    def rewrite(self) -> str:
        """What a rewrite does here: `CHANGES`, `COMMENTS` or nothing."""
        if "rewrite" in self.details:
            return str(self.details["rewrite"])
        if self.verdict in ("fine", "bridge") or self.code in _KEPT:
            return ""
        is_commented = self.verdict == "manual" or self.code in _UNSURE
        return COMMENTS if is_commented else CHANGES

    @property
    def migrate(self) -> str:
        """What `hookbridge migrate rewrite` writes; empty if nothing."""
        return self.way_out if self.verdict == "auto" else ""

    @property
    def person(self) -> str:
        """What is left to a person under `hookbridge run`; empty if nothing."""
        return "" if self.run else self.way_out or self.message


def finding_at(
    module: Module,
    node: ast.AST | None,
    code: str,
    name: str,
    way_out: str,
    details: dict[str, Any] | None = None,
    first: int = 1,
) -> Finding:
    """Return a finding at a node, or in the line `first` for what has no place.

    Args:
      module: the file.
      node: what was found; None for what is in no node.
      code: a key of `CODES`.
      name: what was found, as a dotted name.
      way_out: what to write or do.
      details: see `Finding`.
      first: the line, where there is no node.
    """
    row: int = getattr(node, "lineno", first)
    cell, line = module.cell_and_line(row)
    return Finding(
        file=module.file,
        line=line,
        column=module.column(row, getattr(node, "col_offset", 0)),
        code=code,
        verdict=CODES[code].verdict,
        name=name,
        message=CODES[code].message,
        way_out=way_out,
        cell=cell,
        details=details or {},
    )


@dataclass(frozen=True)
class Report:
    """All findings of a scan.

    Attributes:
      target: the version of TensorFlow that the code has to run on, such as "2.21".
      files: number of files that were read.
      findings: worst verdict first, then by file and line.
      unread: files that were not read, with their reasons.
    """

    target: str
    files: int
    findings: tuple[Finding, ...]
    unread: tuple[Unread, ...] = ()

    @property
    def remaining(self) -> int:
        """Places that do not run as they are, and files that were not read."""
        left = num_places(f for f in self.findings if f.verdict != "fine")
        return left + len(self.unread)

    @property
    def verdicts(self) -> dict[str, int]:
        """Number of places of each verdict, worst first; a line is one place."""
        return {
            verdict: num_places(f for f in self.findings if f.verdict == verdict)
            for verdict in VERDICTS
        }

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return {**asdict(self), "verdicts": self.verdicts}


def num_places(findings: Iterable[Finding]) -> int:
    """Return the number of places of some findings.

    A place is a line, and a removed module, wherever its file uses it.
    """
    return len(
        {
            (f.file, f.details["module"])
            if "module" in f.details
            else (f.file, f.cell, f.line)
            for f in findings
        }
    )


def sort_key(finding: Finding) -> tuple[int, str, int, int, int]:
    """Return what sorts the worst verdict first, then by place."""
    worst = VERDICTS.index(finding.verdict)
    return worst, finding.file, finding.cell, finding.line, finding.column
