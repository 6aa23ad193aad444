"""What a program needs that the installed TensorFlow lacks, and who can mend it.

Nothing is run and TensorFlow is not imported: the files are parsed.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from hookbridge.migrate.codes import CODES
from hookbridge.migrate.findings import Finding, Unread
from hookbridge.migrate.reading.libraries import OldLibraries
from hookbridge.migrate.reading.programs import Programs, read_programs
from hookbridge.migrate.scanning import lacks
from hookbridge.migrate.target import Target
from hookbridge.text_table import aligned

HEADER = ("place", "name", "hookbridge run", "hookbridge migrate", "a person")
# The longest text in a cell of the table, in characters; JSON has the full text.
WIDTH = 60


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

    The modules of a program that its files import are read, as `run` reads them.

    Args:
      paths: files of Python, notebooks, or folders.
      target: the TensorFlow that they have to run on, such as "2.21".

    Raises:
      errors.InvalidArgumentError: a path does not exist, or the names of the target
        are not known.
    """
    names = Target(target)
    programs, unread = read_programs(paths)
    found = [
        _diagnosis(finding)
        for module in programs.modules
        for finding in lacks(module, programs.place(module), names)
    ]
    found += map(_diagnosis, _old_libraries(programs))
    found.sort(key=lambda d: (not d.person, d.file, d.cell, d.line, d.column))
    return Diagnoses(target, len(programs.modules), tuple(found), tuple(unread))


def _old_libraries(programs: Programs) -> Iterator[Finding]:
    """A finding for each installed package that means TensorFlow 1, at its import."""
    libraries = OldLibraries()
    for module in programs.modules:
        for name, use in libraries.imported_by([module]):
            way = "a package for TensorFlow 2, or its code in the program"
            for node in module.source.nodes:
                if name in _imported(node):
                    yield module.finding(node, "OLD_LIBRARY", f"{name} ({use})", way)
                    break


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module.partition(".")[0]]
    return []


def _diagnosis(finding: Finding) -> Diagnosis:
    run = CODES[finding.code].run
    writes = finding.way_out if finding.verdict == "auto" else ""
    return Diagnosis(
        file=finding.file,
        line=finding.line,
        column=finding.column,
        cell=finding.cell,
        name=finding.name,
        code=finding.code,
        run=run,
        migrate=writes,
        person="" if run else finding.way_out or finding.message,
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
