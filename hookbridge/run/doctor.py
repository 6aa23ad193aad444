"""What a program needs that the installed TensorFlow lacks, and who can mend it.

Nothing is run and TensorFlow is not imported: the files are parsed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from hookbridge import migrate
from hookbridge.migrate import contrib_names
from hookbridge.migrate.findings import Finding, Unread
from hookbridge.migrate.rules import OTHER_RUN, RULES
from hookbridge.text_table import aligned

# Findings that are not about what a TensorFlow lacks.
_NO_LACK = frozenset(
    ("HOOK_CLASS", "CALLBACK_CLASS", "HOOK_SITE", "CALLBACK_SITE", "FETCH_RUN")
) | {"STEPS_PER_EPOCH"}
_RUN = {**OTHER_RUN, **{rule.code: rule.run for rule in RULES}}
CONTRIB = "tf.contrib"
HEADER = ("place", "name", "hookbridge run", "hookbridge migrate", "a person")
# The longest text in a cell of the table, in characters; JSON has the full text.
WIDTH = 60
# What `hookbridge run` says of a name of tf.contrib without a rule of its own.
_ANSWERED = "answers as docs/running-tf1.md says"


@dataclass(frozen=True)
class Diagnosis:
    """One place in a program.

    Attributes:
      file, line, column, cell: as in `hookbridge.migrate.Finding`.
      name: the name that the target lacks, or the call that acts differently.
      code: the reason code of the rule.
      run: what `hookbridge run` does about it; empty if nothing.
      migrate: what `hookbridge migrate rewrite` writes; empty if nothing.
      person: what is left to a person; empty if nothing.
    """

    file: str
    line: int
    column: int
    cell: int
    name: str
    code: str
    run: str
    migrate: str
    person: str


@dataclass(frozen=True)
class Diagnoses:
    """All places of all files.

    Attributes:
      target: the TensorFlow that the program has to run on.
      files: number of files that were read.
      found: the places by file and line; those that are left to a person come first.
      unread: files that were not read; a person has to look at them.
    """

    target: str
    files: int
    found: tuple[Diagnosis, ...]
    unread: tuple[Unread, ...]

    @property
    def left(self) -> int:
        """Number of places and files that are left to a person."""
        return sum(bool(one.person) for one in self.found) + len(self.unread)


def diagnose(paths: Iterable[str | os.PathLike[str]], target: str) -> Diagnoses:
    """Lists what the programs in files and folders need and the target lacks.

    Args:
      paths: files of Python, notebooks, or folders.
      target: the TensorFlow that they have to run on, such as "2.21".

    Raises:
      errors.InvalidArgumentError: a path does not exist, or the names of the target
        are not known.
    """
    report = migrate.scan(paths, target=target)
    found = [_diagnosis(f) for f in report.findings if f.code not in _NO_LACK]
    found.sort(key=lambda d: (not d.person, d.file, d.cell, d.line, d.column))
    return Diagnoses(target, report.files, tuple(found), report.unread)


def _diagnosis(finding: Finding) -> Diagnosis:
    run = _RUN.get(finding.code, "")
    if finding.name.startswith(CONTRIB):
        run = (run or _ANSWERED) if contrib_names.lives(finding.name) else ""
    writes = finding.way_out if finding.verdict in ("auto", "assisted") else ""
    return Diagnosis(
        file=finding.file,
        line=finding.line,
        column=finding.column,
        cell=finding.cell,
        name=finding.name,
        code=finding.code,
        run=run,
        migrate=writes,
        person="" if run or writes else finding.way_out or finding.message,
    )


def as_json(diagnoses: Diagnoses) -> str:
    """The diagnoses as JSON, indented."""
    fields: dict[str, Any] = asdict(diagnoses)
    return json.dumps({**fields, "left": diagnoses.left}, indent=2)


def as_table(diagnoses: Diagnoses) -> str:
    """The diagnoses as a table with one line for each."""
    lines = [f"{diagnoses.files} files read; target TensorFlow {diagnoses.target}."]
    if diagnoses.found:
        lines += aligned([HEADER, *map(_row, diagnoses.found)], left=len(HEADER))
    for unread in diagnoses.unread:
        lines.append(f"{unread.file}  could not be read: {unread.reason}")
    if diagnoses.left:
        lines.append(f"{diagnoses.left} of them are left to a person.")
    elif diagnoses.found:
        lines.append("Nothing is left to a person.")
    else:
        lines.append("Nothing is missing.")
    return "\n".join(lines)


def _row(one: Diagnosis) -> tuple[str, ...]:
    cell = f"cell {one.cell}:" if one.cell else ""
    place = f"{one.file}:{cell}{one.line}"
    texts = (_short(text) for text in (one.run, one.migrate, one.person))
    return place, one.name, *texts


def _short(text: str) -> str:
    plain = text.replace("`", "")
    return plain if len(plain) <= WIDTH else f"{plain[: WIDTH - 3]}..."
